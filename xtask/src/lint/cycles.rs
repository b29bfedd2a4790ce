//! The arrows between the parts of the crate: siblings that import each other in a circle, which a folder's `mod.rs` and its files may, and floors of
//! `src/comm` that import one above them. The table of networks names them all, and is no part of its floor here.

use super::{FLOORS, source::Source};
use std::collections::{BTreeMap, BTreeSet};

const HOME: &str = "src/";
const COMM: &str = "comm/";
const TABLE: &str = "comm/start/table";

/// Circles that stand today: settings hold the function by which a bootstrap meets other ranks, and the bootstrap reads settings.
const STANDING: &[&[&str]] = &[&["comm/start/bootstrap", "comm/start/settings"]];

/// Modules of the crate, as `comm/am` or `comm/am/pump`, and the siblings that each imports.
type Graph = BTreeMap<String, BTreeSet<String>>;

/// Circles that do not stand in the table, and lines of the table that are no longer true.
pub fn breaches(sources: &[&Source]) -> Vec<String> {
    let circles = find(sources);
    let new = circles.iter().filter(|circle| !STANDING.contains(&&circle.iter().map(String::as_str).collect::<Vec<_>>()[..]));
    let gone = STANDING.iter().filter(|standing| !circles.iter().any(|circle| circle == *standing));
    let new = new.map(|circle| format!("src: import each other: {}", circle.join(", ")));
    new.chain(gone.map(|circle| format!("xtask/src/lint/cycles.rs: no longer a circle: {}", circle.join(", ")))).collect()
}

/// Each circle once, as its modules.
fn find(sources: &[&Source]) -> Vec<Vec<String>> {
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

/// Each floor of `comm` that imports one above it, and that one.
pub fn upward(sources: &[&Source]) -> Vec<(String, String)> {
    let height = |floor: &str| FLOORS.iter().position(|name| *name == floor).unwrap_or(FLOORS.len());
    let graph = graph(sources);
    let arrows = graph.iter().flat_map(|(from, targets)| targets.iter().map(move |to| (from, to)));
    let within = arrows.filter_map(|(from, to)| Some((from.strip_prefix(COMM)?.to_owned(), to.strip_prefix(COMM)?.to_owned())));
    within.filter(|(from, to)| height(from) < height(to)).collect()
}

fn graph(sources: &[&Source]) -> Graph {
    let files: Vec<(&str, &Source)> = sources.iter().filter_map(|source| Some((module(&source.path)?, *source))).collect();
    let exists = |name: &str| files.iter().any(|(module, _)| *module == name);
    let mut graph = Graph::new();
    for (module, source) in &files {
        // Tests may import what stands above.
        let paths = source.paths.iter().filter(|(line, _)| source.code.lines.contains(line));
        for target in paths.filter_map(|(_, path)| named(module, path)).filter(|target| exists(target)) {
            if let Some((from, to)) = siblings(module, &target) {
                graph.entry(from.to_owned()).or_default().insert(to.to_owned());
            }
        }
    }
    graph
}

/// The module of a file, `am/pump`; the module of a folder is its name, and the root of the crate is none.
fn module(path: &str) -> Option<&str> {
    let module = path.strip_prefix(HOME)?.strip_suffix(".rs")?;
    let module = module.strip_suffix("/mod").unwrap_or(module);
    (!["lib", TABLE].contains(&module)).then_some(module)
}

/// What a path that stands in a module names, as modules are written.
fn named(module: &str, path: &[String]) -> Option<String> {
    let up = path.iter().take_while(|word| *word == "super").count();
    let mut names: Vec<&str> = module.split('/').collect();
    match path[0].as_str() {
        "crate" => names.clear(),
        "super" => names.truncate(names.len().saturating_sub(up)),
        "self" => {}
        _ => return None,
    }
    names.extend(path[up.max(1)..].iter().map(String::as_str));
    Some(names.join("/"))
}

/// Of two modules, the folders or files in their common folder that they belong to. None if one is in the other.
fn siblings<'m>(a: &'m str, b: &'m str) -> Option<(&'m str, &'m str)> {
    let common: usize =
        a.split_inclusive('/').zip(b.split_inclusive('/')).take_while(|(a, b)| a == b).map(|(a, _)| a.len()).sum();
    let part = |of: &'m str| of[common..].split('/').next().map(|name| &of[..common + name.len()]);
    part(a).zip(part(b)).filter(|(a, b)| a != b)
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
            [["comm/engine", "comm/requests"]]
        );
        let [am, pump, write, other] =
            ["src/comm/am/mod.rs", "src/comm/am/pump.rs", "src/comm/am/write.rs", "src/comm/layers.rs"];
        assert_eq!(
            circles(&[(am, ""), (pump, "use super::write::A;"), (write, "use super::pump::B;")]),
            [["comm/am/pump", "comm/am/write"]]
        );
        // What a folder's file names outside counts for the folder.
        assert_eq!(
            circles(&[(am, ""), (pump, "use crate::comm::{Token, layers::A};"), (other, "use super::am::Am;")]),
            [["comm/am", "comm/layers"]]
        );
        let test = "#[cfg(test)] mod tests { use super::engine::Call; }";
        assert!(circles(&[(engine, "use super::requests::Table;"), (requests, test)]).is_empty());
        // A folder names its files, and they what it defines: that is no circle.
        assert!(circles(&[(am, "use self::pump::A;"), (pump, "use super::Am;")]).is_empty());
        let [walk, patch] = ["src/array/algebra/walk.rs", "src/array/algebra/patch.rs"];
        for way in ["super::walk", "super::super::algebra::walk", "crate::{array::algebra::{Operand, walk}}"] {
            assert_eq!(
                circles(&[(walk, "use crate::array::algebra::patch::A;"), (patch, &format!("use {way}::B;"))]),
                [["array/algebra/patch", "array/algebra/walk"]]
            );
        }
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
