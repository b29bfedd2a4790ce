//! The machines of the papers, and Gemini's without links that messages share.

use crate::cargo;
use anyhow::{Context, Result, ensure};
use std::fs;

/// The name of the network of Gemini's machine.
pub const GEMINI: &str = "simulated:gemini-ports";

pub const BLUE_GENE: &str = "simulated:bluegene";

/// The network of the cluster on which CkDirect was measured.
pub fn abe() -> String {
    format!("simulated:{}", cargo::root().join("xtask/src/papers/abe.toml").display())
}

const FILE: &str = "src/comm/simulated/machines/gemini.toml";

/// The network of the same machine with a crossbar in place of its torus.
pub fn without_links() -> Result<String> {
    network("gemini_without_links.toml", crossbar)
}

/// The network of the same machine with processors of another speed.
pub fn of_speed(gigaflops: f64) -> Result<String> {
    network("gemini_of_another_speed.toml", |text| computes_at(text, gigaflops))
}

/// The network of the machine with a changed description, which is written below the target folder.
fn network(name: &str, change: impl Fn(&str) -> Result<String>) -> Result<String> {
    let text = fs::read_to_string(cargo::root().join(FILE)).with_context(|| format!("cannot read {FILE}"))?;
    let path = cargo::folder("papers")?.join(name);
    fs::write(&path, change(&text)?).with_context(|| format!("cannot write {}", path.display()))?;
    Ok(format!("simulated:{}", path.display()))
}

fn computes_at(text: &str, gigaflops: f64) -> Result<String> {
    ensure!(text.lines().any(is_speed), "{FILE} has no line of gigaflops");
    let lines = text.lines().map(|line| if is_speed(line) { format!("gigaflops = {gigaflops}\n") } else { format!("{line}\n") });
    Ok(lines.collect())
}

fn is_speed(line: &str) -> bool {
    line.starts_with("gigaflops = ")
}

fn crossbar(text: &str) -> Result<String> {
    let torus = "topology = \"torus\"";
    ensure!(text.contains(torus), "{FILE} has no line {torus}");
    let lines = text.lines().filter(|line| !line.starts_with("nodes_per_switch"));
    let change = |line: &str| match line.split_once(" = ") {
        Some(("topology", _)) => "topology = \"crossbar\"\n".to_owned(),
        // No message takes a link.
        Some(("link_gb_per_s", _)) => "link_gb_per_s = 1\n".to_owned(),
        _ => format!("{line}\n"),
    };
    Ok(lines.map(change).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_torus_becomes_a_crossbar() -> Result<()> {
        let text = "[network]\ntopology = \"torus\"\nnodes_per_switch = 2 # two\nswitch_us = 0.1\nlink_gb_per_s = [2, 1, 2]\n";
        assert_eq!(crossbar(text)?, "[network]\ntopology = \"crossbar\"\nswitch_us = 0.1\nlink_gb_per_s = 1\n");
        assert!(crossbar("[network]\n").is_err());
        assert_eq!(computes_at("[processor]\ngigaflops = 8.4 # peak\n", 0.5)?, "[processor]\ngigaflops = 0.5\n");
        assert!(computes_at("[processor]\n", 0.5).is_err());
        Ok(())
    }
}
