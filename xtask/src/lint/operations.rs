//! The page for users of Global Arrays names every operation of GA. Whichever has an equivalent is the alias of one item in rustdoc.

use super::rust_files;
use anyhow::{Context, Result};
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

const LIST: &str = "tests/ga_operations.txt";
const PAGE: &str = "src/guide/coming_from_ga.rs";

/// Operations that the page does not answer, aliases that are missing or stand twice, and names that are no operation's.
pub fn breaches(root: &Path) -> Result<Vec<String>> {
    let read = |path: &str| fs::read_to_string(root.join(path)).with_context(|| format!("reading {path}"));
    let sources: Vec<String> = rust_files(root, "src")?.iter().map(|path| read(path)).collect::<Result<_>>()?;
    Ok(differing(&read(LIST)?, &read(PAGE)?, &sources.concat()))
}

fn differing(list: &str, page: &str, sources: &str) -> Vec<String> {
    let lines = list.lines().filter(|line| !line.starts_with('#'));
    let operations: Vec<Vec<&str>> = lines.map(|line| names(line).collect()).filter(|names: &Vec<_>| !names.is_empty()).collect();
    let listed: BTreeSet<&str> = operations.iter().flatten().copied().collect();
    let rows = page.lines().filter_map(|line| line.strip_prefix("//! | ")?.split_once(" | "));
    let (absent, here): (Vec<_>, Vec<_>) = rows.partition(|(_, answer)| answer.starts_with("not here"));
    let of =
        |rows: Vec<(&'_ str, &'_ str)>| rows.iter().flat_map(|(of, _)| names(of)).map(str::to_owned).collect::<BTreeSet<_>>();
    let (absent, here) = (of(absent), of(here));
    let attributes = sources.split("#[doc(alias").skip(1).filter_map(|rest| rest.split_once(")]"));
    let aliases: Vec<&str> = attributes.flat_map(|(attribute, _)| names(attribute)).collect();

    let mut breaches = Vec::new();
    for &name in operations.iter().flatten() {
        match (here.contains(name), absent.contains(name)) {
            (false, false) => breaches.push(format!("{PAGE}: does not name {name}")),
            (true, true) => breaches.push(format!("{PAGE}: {name} has an equivalent, and is \"not here\"")),
            _ => {}
        }
    }
    for name in operations.iter().map(|names| names[0]) {
        let (wanted, found) = (usize::from(here.contains(name)), aliases.iter().filter(|&&alias| alias == name).count());
        if found != wanted {
            breaches.push(format!("src: {found} items have the alias {name}, not {wanted}"));
        }
    }
    let firsts: BTreeSet<&str> = operations.iter().map(|names| names[0]).collect();
    let strange = aliases.iter().filter(|&alias| !firsts.contains(alias));
    breaches.extend(strange.map(|alias| format!("src: the alias {alias} is the first name of no line of {LIST}")));
    let strange = here.union(&absent).filter(|name| !listed.contains(name.as_str()));
    breaches.extend(strange.map(|name| format!("{PAGE}: {name} is not in {LIST}")));
    breaches
}

/// The words of a text that have the form of GA's names.
fn names(text: &str) -> impl Iterator<Item = &str> {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    words.filter(|word| ["GA_", "NGA_", "ga_"].iter().any(|prefix| word.starts_with(prefix)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_page_and_aliases_lack_is_named() {
        let list = "# GA_Old\nGA_Ddot GA_Zdot 5\nGA_Diag called\nNGA_Get 7\nNGA_Put";
        let page = "//! | `GA_Ddot`, `GA_Zdot` | `a.dot(&b)` | |\n//! | `GA_Diag` | not here, because | |\n//! | `NGA_Get(g)` | `get` | |\n";
        let sources =
            "#[doc(alias = \"dot\")]\n#[doc(alias(\"GA_Ddot\",\n\"NGA_Get\"))]\n#[doc(alias = \"NGA_Put\")] \"GA_Diag\"";
        assert_eq!(differing(list, &format!("{page}//! | `NGA_Put` | `put` | |"), sources), [""; 0]);
        let page = page.replace("GA_Zdot", "GA_Cdot") + "//! | `NGA_Get` | not here | |";
        let expected = [
            "src/guide/coming_from_ga.rs: does not name GA_Zdot",
            "src/guide/coming_from_ga.rs: NGA_Get has an equivalent, and is \"not here\"",
            "src/guide/coming_from_ga.rs: does not name NGA_Put",
            "src: 2 items have the alias GA_Ddot, not 1",
            "src: 1 items have the alias NGA_Put, not 0",
            "src: the alias GA_Zdot is the first name of no line of tests/ga_operations.txt",
            "src/guide/coming_from_ga.rs: GA_Cdot is not in tests/ga_operations.txt",
        ];
        assert_eq!(
            differing(list, &page, &sources.replace("dot\")", "GA_Zdot\")").replace("GA_Diag", "#[doc(alias = \"GA_Ddot\")]")),
            expected
        );
    }
}
