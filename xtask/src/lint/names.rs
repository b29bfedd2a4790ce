//! One name, one meaning: no two product types of `src/comm` have the same name.

use super::source::Source;
use std::collections::BTreeMap;

const HOME: &str = "src/comm/";

/// Names that several types still have, and how many. A name that carries its subject, as `WirePiece`, takes its type out of here.
const REPEATED: &[(&str, usize)] =
    &[("Block", 2), ("Connections", 2), ("Events", 2), ("Opened", 2), ("Own", 2), ("Result", 4), ("Words", 2)];

/// Names that more types have than the table says, and lines of the table that are no longer true.
pub fn breaches(product: &[&Source]) -> Vec<String> {
    differing(&repeated(product), REPEATED)
}

/// The files that define a type of each name, if there are several.
fn repeated<'s>(product: &[&'s Source]) -> BTreeMap<&'s str, Vec<&'s str>> {
    let mut homes: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for source in product.iter().filter(|source| source.path.starts_with(HOME)) {
        for (_, name) in source.types.iter().filter(|(line, _)| source.code.lines.contains(line)) {
            homes.entry(name).or_default().push(&source.path);
        }
    }
    homes.retain(|_, homes| homes.len() > 1);
    homes
}

fn differing(repeated: &BTreeMap<&str, Vec<&str>>, table: &[(&str, usize)]) -> Vec<String> {
    let known = |name: &str| table.iter().find(|(known, _)| *known == name).map_or(1, |&(_, types)| types);
    let now = |name: &str| repeated.get(name).map_or(1, Vec::len);
    let new = repeated.iter().filter(|(name, homes)| homes.len() > known(name));
    let new = new.map(|(name, homes)| format!("src/comm: {} types are named {name}: {}", homes.len(), homes.join(", ")));
    let old = table.iter().filter(|&&(name, types)| now(name) < types);
    let old =
        old.map(|(name, _)| format!("xtask/src/lint/names.rs: {} type(s) named {name}, fewer than in the table", now(name)));
    new.chain(old).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_of_one_name_are_found_unless_the_table_has_them() {
        let files = [
            ("src/comm/a.rs", "pub struct Piece;\ntype Out = u8;\nimpl T for Piece { type Item = u8; }\nenum One { Piece }"),
            ("src/comm/b/mod.rs", "trait Piece {}\n#[cfg(test)]\nenum Out {}\nimpl T for X { type Item = u8; }"),
            ("src/sync/mod.rs", "struct One;"),
        ];
        let sources = files.map(|(path, text)| Source::parse(path, text).expect("Rust"));
        let product: Vec<&Source> = sources.iter().collect();
        let repeated = repeated(&product);
        assert_eq!(differing(&repeated, &[]), ["src/comm: 2 types are named Piece: src/comm/a.rs, src/comm/b/mod.rs"]);
        assert!(differing(&repeated, &[("Piece", 2)]).is_empty());
        let gone = differing(&repeated, &[("Piece", 3), ("Out", 2)]);
        let line =
            |types: usize, name: &str| format!("xtask/src/lint/names.rs: {types} type(s) named {name}, fewer than in the table");
        assert_eq!(gone, [line(2, "Piece"), line(1, "Out")]);
    }
}
