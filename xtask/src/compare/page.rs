//! `docs/performance.md`: one section for each file of figures in `docs/performance`, between two markers.
//!
//! What stands before and after the markers is written by hand.

use super::chart;
use super::reasons::Reasons;
use super::results::Results;
use super::table;
use anyhow::{Context, Result, bail};
use std::fs;
use std::path::{Path, PathBuf};

const BEGIN: &str = "<!-- compare:begin, written by `cargo xtask compare` -->\n";
const END: &str = "<!-- compare:end -->\n";

/// The file of a machine's figures.
pub fn figures(root: &Path, machine: &str) -> PathBuf {
    folder(root).join(format!("{machine}.csv"))
}

/// Draws all charts and writes the page anew from the figures of all machines. Answers the rows that miss a goal without a reason.
pub fn write(root: &Path) -> Result<Vec<String>> {
    let (sections, unexplained) = sections(root)?;
    for (machine, results) in machines(root)? {
        save(&folder(root).join(format!("{machine}.svg")), &chart::svg(&results))?;
    }
    let path = page(root);
    save(&path, &replaced(&read(&path)?, &sections)?)?;
    Ok(unexplained)
}

fn folder(root: &Path) -> PathBuf {
    root.join("docs/performance")
}

fn page(root: &Path) -> PathBuf {
    root.join("docs/performance.md")
}

fn read(path: &Path) -> Result<String> {
    fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))
}

fn save(path: &Path, text: &str) -> Result<()> {
    fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
}

/// The machines by name, with what was measured on each.
fn machines(root: &Path) -> Result<Vec<(String, Results)>> {
    let folder = folder(root);
    let entries = fs::read_dir(&folder).with_context(|| format!("cannot read {}", folder.display()))?;
    let mut machines = Vec::new();
    for entry in entries {
        let path = entry?.path();
        if let (Some(name), Some("csv")) = (path.file_stem().and_then(|n| n.to_str()), path.extension().and_then(|e| e.to_str()))
        {
            machines.push((name.to_owned(), Results::read(&path)?));
        }
    }
    machines.sort_by(|(a, _), (b, _)| a.cmp(b));
    Ok(machines)
}

/// The text between the markers, and the rows that miss a goal without a reason.
fn sections(root: &Path) -> Result<(String, Vec<String>)> {
    let reasons = Reasons::read(&folder(root).join("reasons.txt"))?;
    let (mut text, mut unexplained) = (String::new(), Vec::new());
    for (machine, results) in machines(root)? {
        let reasons = reasons.on(&machine);
        text.push_str(&format!("\n## {}\n\nMeasured {}.\n", results.title, results.dates()));
        for note in &results.notes {
            text.push_str(&format!("{note}\n"));
        }
        text.push_str(&format!("\n![Speed of global-arrays relative to others]({}/{machine}.svg)\n", "performance"));
        text.push_str(&table::markdown(&results, &reasons));
        let missing = table::unexplained(&results, &reasons);
        unexplained.extend(missing.into_iter().map(|row| format!("{machine}: {row}")));
    }
    text.push('\n');
    Ok((text, unexplained))
}

fn replaced(page: &str, sections: &str) -> Result<String> {
    let (Some(begin), Some(end)) = (page.find(BEGIN), page.find(END)) else {
        bail!("the page has no markers {} and {}", BEGIN.trim_end(), END.trim_end());
    };
    Ok(format!("{}{sections}{}", &page[..begin + BEGIN.len()], &page[end..]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cargo;

    #[test]
    fn the_page_and_its_charts_are_those_of_the_figures() -> Result<()> {
        let root = cargo::root();
        let text = read(&page(&root))?;
        assert_eq!(replaced(&text, &sections(&root)?.0)?, text, "run `cargo xtask compare --redraw`");
        for (machine, results) in machines(&root)? {
            let drawn = read(&folder(&root).join(format!("{machine}.svg")))?;
            assert_eq!(chart::svg(&results), drawn, "{machine}: run `cargo xtask compare --redraw`");
        }
        Ok(())
    }

    #[test]
    fn every_row_that_misses_its_goal_has_a_reason() -> Result<()> {
        let unexplained = sections(&cargo::root())?.1;
        assert!(unexplained.is_empty(), "add to docs/performance/reasons.txt: {unexplained:#?}");
        Ok(())
    }

    #[test]
    fn what_stands_outside_the_markers_is_kept() -> Result<()> {
        let page = format!("before\n{BEGIN}old{END}after\n");
        assert_eq!(replaced(&page, "new\n")?, format!("before\n{BEGIN}new\n{END}after\n"));
        assert!(replaced("no markers", "new").is_err());
        Ok(())
    }
}
