//! Mistakes in a problem file, what its keys mean, and the shipped problems.

mod at_rest;
mod closed_forms;
mod leaky;

use clap::Parser;

use super::Posed;
use super::source::Source;
use crate::cases::Case;
use crate::cli::Arguments;
use crate::medium::Medium;
use crate::problem::{Boundary, Problem};

/// A shipped problem, with parts of its text replaced.
fn posed(name: &str, replaced: &[(&str, &str)]) -> Result<Posed, String> {
    posed_with(name, replaced, "")
}

/// The same with options of the command line.
fn posed_with(name: &str, replaced: &[(&str, &str)], options: &str) -> Result<Posed, String> {
    let path = format!("{}/problems/{name}.toml", env!("CARGO_MANIFEST_DIR"));
    let mut text = std::fs::read_to_string(path).unwrap();
    for (from, to) in replaced {
        assert!(text.contains(from), "{name} has no {from}");
        text = text.replace(from, to);
    }
    pose_with(name, text, options)
}

fn pose(name: &str, text: String) -> Result<Posed, String> {
    pose_with(name, text, "")
}

fn pose_with(name: &str, text: String, options: &str) -> Result<Posed, String> {
    let line = format!("subsurface --problem {name} {options}");
    let arguments = Arguments::try_parse_from(line.split_whitespace()).unwrap();
    Posed::new(&Source::new(format!("{name}.toml"), text), &arguments)
}

/// A mistake gives one line with the name of the file, and with its line and key where it has one.
#[test]
fn mistakes_are_told_in_one_line() {
    let error = |name, from, to| posed(name, &[(from, to)]).err().unwrap_or_else(|| format!("{to} is taken"));
    let tracy = |from, to| error("tracy", from, to);
    let sand = |from, to| error("dry_sand", from, to);
    for (message, parts) in [
        (sand("title = ", "titel = "), &["line 5", "titel", "title"][..]),
        (sand("conductivity = 8.25e-5", "conductivity = -1"), &["line 11", "conductivity of sand", "above 0"]),
        (sand("conductivity = 8.25e-5", "conductivity = [1, 2]"), &["line 11", "conductivity = [1, 2]", "three for x, y and z"]),
        (sand("alpha = 14.5", "alpha = \"wet\""), &["line 12", "alpha = \"wet\"", "expected f64"]),
        (sand("alpha = 14.5", "alpha = nan"), &["line 12", "alpha = NaN", "above 0"]),
        (sand("n = 2.68", "n = 1"), &["line 12", "n = 1", "above 1"]),
        (sand("saturated = 0.43", "saturated = 0.04"), &["line 12", "saturated = 0.04", "above residual = 0.045"]),
        (sand("van_genuchten", "brooks_corey"), &["line 12", "brooks_corey", "van_genuchten", "gardner"]),
        (sand("van_genuchten = {", "confined = { specific_storage = 1 }\nvan_genuchten = {"), &["material sand", "one of"]),
        (sand("material = \"sand\"", "material = \"clay\""), &["line 15", "material = \"clay\"", "known materials are sand"]),
        (sand("length = 1.0", "width = 1.0"), &["line 8", "width", "length"]),
        (sand("cells = 100", "cells = 0"), &["line 8", "cells = 0", "between 1 and"]),
        (sand("cells = 100", "cells = 2.5"), &["line 8", "cells = 2.5"]),
        (sand("z = { cells = 100, length = 1.0 }", "z = { faces = [0, 2, 1] }"), &["line 8", "ascend"]),
        (sand("z = { cells = 100, length = 1.0 }", "z = { cells = 100 }"), &["line 8", "`cells` and `length`"]),
        (sand("pressure_head = -100.0", ""), &["line 17", "initial", "pressure_head"]),
        (sand("side = \"top\"", "side = \"north\""), &["line 22", "side = \"north\"", "bottom, top, x_min"]),
        (sand("[[0.0, 5.0e-6]", "[[1.0, 5.0e-6]"), &["line 23", "inflow", "begin with 0"]),
        (sand("inflow = ", "head = 1\ninflow = "), &["line 21", "a boundary needs one of"]),
        (sand("side = \"top\"", "side = \"top\"\nz = 0.5"), &["line 23", "z says nothing on the side top"]),
        (sand("end = 86400.0", "end = 0"), &["line 26", "end = 0", "above 0"]),
        (sand("end = 86400.0", ""), &["line 25", "missing field `end`"]),
        (sand("43200.0]", "1e9]"), &["line 28", "outputs = 1000000000", "at most end = 86400"]),
        (sand("[time]", "[time]\noutput = 3"), &["line 26", "output", "outputs"]),
        (sand("van_genuchten = {", "van_genuchten = 3 #"), &["line 12", "van_genuchten = 3", "expected a table"]),
        (sand("z = 0.905", "z = 1.5"), &["line 32", "z = 1.5", "outside the grid"]),
        (sand("title = \"", "title = "), &["line 5"]),
        (sand("\"z50\"", "\"z90\""), &["line 35", "name = \"z90\"", "a name of its own"]),
        (sand("\"z50\"", "\" \""), &["line 35", "a name of its own"]),
        (
            sand("first_step = 1.0e-2", "first_step = 5\nlongest_step = 2"),
            &["first_step = 5, longest_step = 2", "to the longest"],
        ),
        (sand("first_step = 1.0e-2", "first_step = 5\nshortest_step = 6"), &["shortest_step = 6, first_step = 5"]),
        (sand("length = 1.0 }", "length = 1.0, ratio = 1.5 }"), &["line 8", "ratio = 1.5 over 100 cells"]),
        (sand("[grid]", "[grid]\nx = { cells = 100000000, length = 1 }"), &["the grid has more than"]),
        (sand("-100.0", "\"ln(z - 0.5)\""), &["line 18", "initial: pressure_head: the value is NaN", "z = 0.005 m"]),
        (sand("-100.0", "\"1e999\""), &["line 18", "the value is inf"]),
        (
            sand("-100.0", "1\nregions = [{ z = 0.1, head = \"1/0\" }]"),
            &["line 19", "initial: head: the value is inf", "z = 0.095 m"],
        ),
        (tracy("z = 8.75", ""), &["observation upper", "z is missing"]),
        (tracy("width = 10.0", "e = 10.0"), &["line 11", "cannot have the name e"]),
        (tracy("\"dry\"", "\"dryness\""), &["line 26", "pressure_head", "`dryness`", "known are x, y, z, alpha, dry, width"]),
        (tracy("\"dry\"", "\"dry + \""), &["line 26", "pressure_head", "is no formula"]),
        (tracy("ln(exp", "ln(-exp"), &["side = \"top\"", "the value is", "at x ="]),
    ] {
        assert!(!message.contains('\n'), "{message}");
        for part in parts {
            assert!(message.contains(part), "{message} does not say {part}");
        }
    }
}

/// The file that the README explains is a problem.
#[test]
fn the_readme_poses_a_problem() {
    let readme = include_str!("../../README.md");
    let file = readme.split("```toml\n").nth(1).and_then(|text| text.split("```").next()).unwrap();
    let problem = pose("well", file.into()).unwrap();
    assert_eq!(problem.grid().extents(), [6, 20, 9]);
    let rows = closed_forms::rows(&problem, 2, "");
    assert_eq!(rows.last().map(|row| row[0]), Some(1_728_000.0));
    // The well draws the water down, and it comes back when the well rests.
    let head = |time: f64| rows.iter().find(|row| row[0] == time).map(|row| row[2]).unwrap();
    let heads = [86_400.0, 864_000.0, 1_728_000.0].map(head);
    assert!(heads[1] < 4.0 && heads[2] > heads[1]);
}

const LAYERS: &str = r#"
[grid]
x = { cells = 4, length = 8.0, start = -4.0 }
z = { faces = [0.0, 1.0, 3.0] }

[materials]
clay = { conductivity = [4e-9, 3e-9, 1e-9], van_genuchten = { alpha = 0.8, n = 1.25, residual = 0.07, saturated = 0.4 } }
sand = { conductivity = 1e-4, confined = { specific_storage = 1e-5 } }

[ground]
material = "sand"
regions = [{ material = "clay", z = [1.0, 3.0] }, { material = "sand", z = 2.0, x = [2, 4] }]

[initial]
head = 2.5
regions = [{ pressure_head = "-x", x = [-4, 0], z = 0.5 }]

[[boundaries]]
side = "x_max"
head = 1.5

[[boundaries]]
side = "x_max"
z = [0, 1]
leaky = { head = [[0, 4.0], [10, 5.0]], conductance = 1e-6 }

[[wells]]
z = [0, 1]
x = [0, 4]
rate = [[0, -2.0], [30, 0.0]]

[time]
end = 50
outputs = [20]
"#;

#[test]
fn keys_mean_what_they_say() {
    let posed = pose("layers", LAYERS.into()).unwrap();
    assert_eq!(posed.grid().extents(), [2, 4, 1]);
    // Later regions override earlier ones, and conductivities are those of z, x and y.
    assert!(matches!(posed.medium([1, 0, 0]), Medium::VanGenuchten { .. }));
    assert!(matches!(posed.medium([1, 3, 0]), Medium::Confined { .. }));
    assert_eq!([0, 1, 2].map(|axis| posed.conductivity(axis, [1, 0, 0])), [1e-9, 4e-9, 3e-9]);
    // A hydraulic head is hydrostatic.
    assert_eq!([[0, 3, 0], [1, 0, 0]].map(|cell| posed.initial_head(cell)), [2.0, 0.5]);
    assert_eq!(posed.initial_head([0, 0, 0]), 3.0);
    assert_eq!(posed.boundary(1, true, [1, 3, 0], 0.0), Boundary::Head(-0.5));
    let leaky = |head| Boundary::Leaky { head, conductance: 1e-6 };
    assert_eq!([0.0, 9.0, 10.0].map(|time| posed.boundary(1, true, [0, 3, 0], time)), [leaky(3.5), leaky(3.5), leaky(4.5)]);
    assert_eq!(posed.boundary(1, false, [0, 0, 0], 0.0), Boundary::Closed);
    assert_eq!([0.0, 29.0, 30.0].map(|time| posed.source([0, 2, 0], time)), [-1.0, -1.0, 0.0]);
    assert_eq!(posed.source([0, 1, 0], 0.0), 0.0);
    // Steps end where something changes.
    assert_eq!(posed.schedule().times, [10.0, 20.0, 30.0, 50.0]);
    assert_eq!(posed.frames(), [20.0, 50.0]);
    assert!(!posed.linear());
}

/// What is no formula gives one line; parentheses may be nested as deep as a formula is long.
#[test]
fn no_formula_stops_the_program() {
    let head = |formula: &str| posed("tracy", &[("\"dry\"", &format!("\"{formula}\""))]);
    for text in
        ["", " ", "(", ")", "()", "1 +", "+", "sin", "sin()", "x x", "1 2", "{", "{x}", "x,y", "min(x,y,z)", "^", "é", "-x^2"]
    {
        let error = head(text).err().unwrap_or_else(|| format!("{text} is taken"));
        assert!(error.starts_with("tracy.toml: line 26: pressure_head: ") && !error.contains('\n'), "{error}");
    }
    let nested = format!("{}x{}", "(".repeat(900), ")".repeat(900));
    assert_eq!(head(&nested).unwrap().initial_head([0, 3, 0]), 1.75);
    assert!(head(&"x+".repeat(1001)).unwrap_err().contains("letters"));
}
