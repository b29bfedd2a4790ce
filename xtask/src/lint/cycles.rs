//! The arrows between the parts of `src/comm`: siblings that import each other in a circle, which a folder's `mod.rs` and its files may, and floors
//! that import one above them. The table of networks, like `comm` itself, names them all, and is no part of its floor here.

use super::{FLOORS, source::Source};
use std::collections::{BTreeMap, BTreeSet};

const HOME: &str = "src/comm/";
const TABLE: &str = "start/table";

/// Modules below `comm`, as `am` or `am/pump`, and the siblings that each imports.
type Graph = BTreeMap<String, BTreeSet<String>>;

/// Each circle once, as its modules.
pub fn find(sources: &[&Source]) -> Vec<Vec<String>> {
    let graph = graph(sources);
    let mut circles = BTreeSet::new();
    for start in graph.keys() {
        if let Some(mut circle) = way(&graph, start, start) {
            circle.sort();
            circles.insert(circle);
        }
    }
    circles.into_iter().collect()
}

/// Each floor that imports one above it, and that one.
pub fn upward(sources: &[&Source]) -> Vec<(String, String)> {
    let height = |floor: &str| FLOORS.iter().position(|name| *name == floor).unwrap_or(FLOORS.len());
    let graph = graph(sources);
    let arrows = graph.iter().flat_map(|(from, targets)| targets.iter().map(move |to| (from.clone(), to.clone())));
    arrows.filter(|(from, to)| height(from) < height(to)).collect()
}

fn graph(sources: &[&Source]) -> Graph {
    let files: Vec<(&str, &Source)> = sources.iter().filter_map(|source| Some((module(&source.path)?, *source))).collect();
    let exists = |name: &str| files.iter().any(|(module, _)| *module == name);
    let mut graph = Graph::new();
    for (module, source) in &files {
        let folder = module.rsplit_once('/').map_or("", |(folder, _)| folder);
        // Tests may import what stands above.
        let named = |parent| source.members_of(parent).filter(|(line, _)| source.code.lines.contains(line)).map(|(_, name)| name);
        let beside = named("super").map(|name| if folder.is_empty() { name } else { format!("{folder}/{name}") });
        let below_comm = named("comm");
        for target in beside.chain(below_comm).filter(|target| exists(target)) {
            let (from, to) = siblings(module, &target);
            if from != to {
                graph.entry(from.to_owned()).or_default().insert(to.to_owned());
            }
        }
    }
    graph
}

/// The module of a file, `am/pump`; the module of a folder is its name, and `comm` itself, which names all others, is none.
fn module(path: &str) -> Option<&str> {
    let module = path.strip_prefix(HOME)?.strip_suffix(".rs")?;
    let module = module.strip_suffix("/mod").unwrap_or(module);
    (module != "mod" && module != TABLE).then_some(module)
}

/// Of two modules, the folders or files in their common folder that they belong to.
fn siblings<'m>(a: &'m str, b: &'m str) -> (&'m str, &'m str) {
    match (a.split_once('/'), b.split_once('/')) {
        (Some((x, _)), Some((y, _))) if x == y => (a, b),
        (x, y) => (x.map_or(a, |(folder, _)| folder), y.map_or(b, |(folder, _)| folder)),
    }
}

/// The modules on a way of imports, without the last.
fn way(graph: &Graph, from: &str, to: &str) -> Option<Vec<String>> {
    let mut before: BTreeMap<&str, &str> = BTreeMap::new();
    let mut open = vec![from];
    while let Some(module) = open.pop() {
        for next in graph.get(module).into_iter().flatten() {
            if next == to {
                let mut way = vec![module.to_owned()];
                let mut at = module;
                while at != from {
                    at = before[at];
                    way.push(at.to_owned());
                }
                return Some(way);
            }
            if next != from && !before.contains_key(next.as_str()) {
                before.insert(next, module);
                open.push(next);
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn circles(files: &[(&str, &str)]) -> Vec<Vec<String>> {
        let sources: Vec<Source> = files.iter().map(|(path, text)| Source::parse(path, text).expect("Rust")).collect();
        find(&sources.iter().collect::<Vec<_>>())
    }

    #[test]
    fn circles_of_imports_are_found() {
        let [engine, requests] = ["src/comm/engine/mod.rs", "src/comm/requests.rs"];
        assert!(circles(&[(engine, "use super::{Token, requests::Table};"), (requests, "use super::Token;")]).is_empty());
        assert_eq!(
            circles(&[(engine, "use super::requests::Table;"), (requests, "use super::{Token, engine::Call};")]),
            [["engine", "requests"]]
        );
        let [am, pump, write, other] =
            ["src/comm/am/mod.rs", "src/comm/am/pump.rs", "src/comm/am/write.rs", "src/comm/layers.rs"];
        assert_eq!(
            circles(&[(am, ""), (pump, "use super::write::A;"), (write, "use super::pump::B;")]),
            [["am/pump", "am/write"]]
        );
        // What a folder's file names outside counts for the folder.
        assert_eq!(
            circles(&[(am, ""), (pump, "use crate::comm::{Token, layers::A};"), (other, "use super::am::Am;")]),
            [["am", "layers"]]
        );
        let test = "#[cfg(test)] mod tests { use super::engine::Call; }";
        assert!(circles(&[(engine, "use super::requests::Table;"), (requests, test)]).is_empty());
        // A folder names its files, and they what it defines: that is no circle.
        assert!(circles(&[(am, "use self::pump::A;"), (pump, "use super::Am;")]).is_empty());
    }

    #[test]
    fn arrows_to_floors_above_are_found() {
        let upward = |path: &str, text: &str| {
            let above = Source::parse("src/comm/am/mod.rs", "").expect("Rust");
            let (network, table) = (Source::parse("src/comm/ib/mod.rs", ""), Source::parse("src/comm/start/mod.rs", ""));
            let source = Source::parse(path, text).expect("Rust");
            upward(&[&above, &network.expect("Rust"), &table.expect("Rust"), &source])
        };
        let arrow = |from: &str, to: &str| vec![(from.to_owned(), to.to_owned())];
        assert_eq!(upward("src/comm/kit/slab.rs", "use crate::comm::am::Am;"), arrow("kit", "am"));
        assert_eq!(upward("src/comm/start/devices.rs", "use crate::comm::{am, ib::Wire};"), arrow("start", "ib"));
        assert!(upward("src/comm/ib/wire.rs", "use crate::comm::{am::Am, start::Named};").is_empty());
        assert!(upward("src/comm/start/table.rs", "use crate::comm::ib;").is_empty());
    }
}
