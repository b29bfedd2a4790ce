//! Every program of the guide, the front page and the README compiles in a crate that depends on this one alone.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

/// What stands behind the backticks of a block that is a program. Other blocks are text, or need what they name.
const PROGRAMS: &[&str] = &["", "rust", "no_run", "standalone_crate"];

/// The lines of the documentation that a file holds.
fn documentation(path: &Path) -> Vec<String> {
    let text = fs::read_to_string(path).expect("a source");
    if path.extension().is_some_and(|ending| ending == "md") {
        return text.lines().map(str::to_owned).collect();
    }
    text.lines()
        .filter_map(|line| line.strip_prefix("//!"))
        .map(|line| line.strip_prefix(' ').unwrap_or(line).to_owned())
        .collect()
}

/// The programs among these lines, as modules.
fn programs(lines: &[String], name: &str) -> Vec<String> {
    let (mut programs, mut rest) = (Vec::new(), lines.iter());
    while let Some(line) = rest.next() {
        let Some(kind) = line.strip_prefix("```") else { continue };
        let block: Vec<&str> = rest.by_ref().take_while(|line| !line.starts_with("```")).map(String::as_str).collect();
        if !PROGRAMS.contains(&kind) {
            continue;
        }
        // What the page hides.
        let shown = block.iter().map(|line| if *line == "#" { "" } else { line.strip_prefix("# ").unwrap_or(line) });
        let body = shown.collect::<Vec<_>>().join("\n");
        let body = if body.contains("fn main()") { body } else { format!("fn main() {{\n{body}\n}}") };
        programs.push(format!("mod {name}_{} {{\n{body}\n}}\n", programs.len()));
    }
    programs
}

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            found.push(path);
        }
    }
}

#[test]
fn the_guide_needs_no_other_crate() {
    let home = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the repository");
    let mut paths = vec![home.join("README.md"), home.join("src/lib.rs")];
    sources(&home.join("src/guide"), &mut paths);
    let name = |path: &Path| path.file_stem().map(|stem| stem.to_string_lossy().to_lowercase()).unwrap_or_default();
    let programs: Vec<String> = paths.iter().flat_map(|path| programs(&documentation(path), &name(path))).collect();
    assert!(programs.len() > 20, "the programs of the guide were not found: {}", programs.len());

    let outside = Path::new(env!("CARGO_TARGET_TMPDIR")).join("outside");
    fs::create_dir_all(outside.join("src")).expect("a folder for the crate");
    let manifest = format!(
        "[package]\nname = \"outside\"\nedition = \"2024\"\n[dependencies]\nglobal-arrays = {{ path = {:?} }}\n[workspace]\n",
        home.display().to_string()
    );
    fs::write(outside.join("Cargo.toml"), manifest).expect("a manifest");
    fs::write(outside.join("src/lib.rs"), format!("#![allow(dead_code, unused)]\n{}", programs.concat())).expect("a source");
    // The same versions as here, which are there already.
    fs::copy(home.join("Cargo.lock"), outside.join("Cargo.lock")).expect("the versions");
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["check", "--quiet", "--offline", "--manifest-path"]).arg(outside.join("Cargo.toml"));
    let checked = cargo.env("CARGO_TARGET_DIR", outside.join("target")).output().expect("cargo");
    assert!(checked.status.success(), "{}", String::from_utf8_lossy(&checked.stderr));
}
