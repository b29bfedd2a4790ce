//! The machine of the paper, and the same without links that messages share.

use crate::cargo;
use anyhow::{Context, Result, ensure};
use std::fs;
use std::path::PathBuf;

/// The name of the network of the machine.
pub const GEMINI: &str = "simulated:gemini";

const FILE: &str = "src/comm/simulated/machines/gemini.toml";

/// The network of the same machine with a crossbar in place of its torus. It is written below the target folder.
pub fn without_links() -> Result<String> {
    let text = fs::read_to_string(cargo::root().join(FILE)).with_context(|| format!("cannot read {FILE}"))?;
    let path: PathBuf = cargo::target()?.join("papers").join("gemini_without_links.toml");
    fs::create_dir_all(path.parent().context("a folder")?)?;
    fs::write(&path, crossbar(&text)?).with_context(|| format!("cannot write {}", path.display()))?;
    Ok(format!("simulated:{}", path.display()))
}

fn crossbar(text: &str) -> Result<String> {
    let torus = "topology = \"torus\"";
    ensure!(text.contains(torus), "{FILE} has no line {torus}");
    let lines = text.lines().filter(|line| !line.starts_with("nodes_per_switch"));
    Ok(lines.map(|line| line.replace(torus, "topology = \"crossbar\"") + "\n").collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_torus_becomes_a_crossbar() -> Result<()> {
        let text = "[network]\ntopology = \"torus\"\nnodes_per_switch = 2 # two\nswitch_us = 0.1\n";
        assert_eq!(crossbar(text)?, "[network]\ntopology = \"crossbar\"\nswitch_us = 0.1\n");
        assert!(crossbar("[network]\n").is_err());
        Ok(())
    }
}
