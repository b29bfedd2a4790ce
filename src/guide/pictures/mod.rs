//! Pictures of distributions for the tutorial, drawn from the arithmetic that arrays use.
//!
//! The files beside this one are part of the documentation. The test fails when they are not what the code draws;
//! `GA_REDRAW=1 cargo test --lib guide` writes them anew.

use std::fmt::Write as _;
use std::{env, fs};

use ndarray::{Dim, Ix2};

use crate::distribution::{Boundary, Distribution, Ghosts, Order};

/// Edge of an element, in pixels.
const CELL: usize = 24;
/// Between two arrays, and above each for its title.
const GAP: usize = 40;
const TITLE: usize = 24;
/// One color for each member; dark text is readable on all, and dark and light pages are fine around them.
const COLORS: [&str; 4] = ["#9ecae1", "#fdae6b", "#a1d99b", "#d4b9da"];
const EXTENTS: [usize; 2] = [8, 8];
const MEMBERS: usize = 4;

/// An array of cells with a title: for each cell its member and what is written into it.
struct Panel {
    title: &'static str,
    rows: usize,
    columns: usize,
    cells: Vec<Cell>,
}

struct Cell {
    at: (usize, usize),
    size: (usize, usize),
    member: usize,
    label: String,
}

/// One rectangle for each block, with the number of its member.
fn blocks(title: &'static str, distribution: &Distribution<Ix2>) -> Panel {
    let mut cells = Vec::new();
    for member in 0..distribution.members() {
        for block in distribution.blocks(member) {
            let pair = |d: &Ix2| (d[0], d[1]);
            let (at, size) = (pair(block.patch.start()), pair(block.patch.count()));
            cells.push(Cell { at, size, member, label: member.to_string() });
        }
    }
    Panel { title, rows: EXTENTS[0], columns: EXTENTS[1], cells }
}

/// One square for each element; those of member 0 show where they lie in its part.
fn offsets(title: &'static str, distribution: &Distribution<Ix2>) -> Panel {
    elements(
        title,
        distribution,
        |index, member| {
            if member == 0 { distribution.locate(&index).offset.to_string() } else { String::new() }
        },
    )
}

fn elements(title: &'static str, distribution: &Distribution<Ix2>, label: impl Fn(Ix2, usize) -> String) -> Panel {
    let cell = |(i, j): (usize, usize)| {
        let member = distribution.locate(&Dim([i, j])).member;
        Cell { at: (i, j), size: (1, 1), member, label: label(Dim([i, j]), member) }
    };
    let cells = ndarray::indices(EXTENTS).into_iter().map(cell).collect();
    Panel { title, rows: EXTENTS[0], columns: EXTENTS[1], cells }
}

fn subscript(index: Ix2, _: usize) -> String {
    format!("{},{}", index[0], index[1])
}

/// The part of member 0 in memory: each cell shows which element it holds or stands for, in the color of the element's owner.
fn part(title: &'static str, distribution: &Distribution<Ix2>) -> Panel {
    let widths = distribution.ghost_widths();
    let mut cells = Vec::new();
    let mut stand = |local: (usize, usize), index: Ix2| {
        let member = distribution.locate(&index).member;
        cells.push(Cell { at: local, size: (1, 1), member, label: subscript(index, member) });
    };
    for block in distribution.blocks(0) {
        for (i, j) in ndarray::indices(*block.patch.count()) {
            stand((widths[0] + i, widths[1] + j), Dim([block.patch.start()[0] + i, block.patch.start()[1] + j]));
        }
    }
    for ghosts in distribution.ghost_boxes(0) {
        for (i, j) in ndarray::indices(*ghosts.patch.count()) {
            let index = Dim([ghosts.patch.start()[0] + i, ghosts.patch.start()[1] + j]);
            stand((ghosts.local[0] + i, ghosts.local[1] + j), index);
        }
    }
    let shape = distribution.part_shape(0);
    Panel { title, rows: shape[0], columns: shape[1], cells }
}

/// Panels beside each other. Rustdoc takes it as a block of HTML: no line may be empty.
fn svg(panels: &[Panel]) -> String {
    let width: usize = panels.iter().map(|panel| panel.columns * CELL + GAP).sum();
    let height = TITLE + panels.iter().map(|panel| panel.rows).max().unwrap_or(0) * CELL + 4;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" style=\"max-width:100%\" \
         font-family=\"sans-serif\" font-size=\"11\" text-anchor=\"middle\">\n"
    );
    let mut left = 2;
    for panel in panels {
        let _ = writeln!(
            svg,
            "<text x=\"{left}\" y=\"14\" font-size=\"13\" text-anchor=\"start\" fill=\"currentColor\">{}</text>",
            panel.title
        );
        for Cell { at, size, member, label } in &panel.cells {
            let (x, y) = (left + at.1 * CELL, TITLE + at.0 * CELL);
            let (w, h) = (size.1 * CELL, size.0 * CELL);
            let color = COLORS[member % COLORS.len()];
            let _ = writeln!(svg, "<path d=\"M{x} {y}h{w}v{h}h-{w}z\" fill=\"{color}\" stroke=\"white\"></path>");
            if !label.is_empty() {
                let (x, y) = (x + w / 2, y + h / 2 + 4);
                let _ = writeln!(svg, "<text x=\"{x}\" y=\"{y}\" fill=\"#222\">{label}</text>");
            }
        }
        left += panel.columns * CELL + GAP;
    }
    svg.push_str("</svg>\n");
    svg
}

#[test]
fn the_pictures_are_what_the_distributions_say() {
    let extents = Dim(EXTENTS);
    let block = || Distribution::block(&extents, MEMBERS, None, Order::RowMajor).unwrap();
    let cyclic = |order| Distribution::block_cyclic(&extents, &[2, 2], MEMBERS, None, order).unwrap();
    let irregular = Distribution::irregular(&extents, &[vec![0, 6], vec![0, 3]], MEMBERS, Order::RowMajor).unwrap();
    let tiled = Distribution::tiled(&extents, &[2, 2], MEMBERS, None, Order::RowMajor).unwrap();
    let ghosts = Ghosts { widths: Dim([1, 1]), boundaries: vec![Boundary::Periodic; 2], corners: true };
    let padded = block().with_ghosts(ghosts).unwrap();
    let pictures = [
        (
            "owners",
            svg(&[
                blocks("block (the default)", &block()),
                blocks("block_cyclic([2, 2])", &cyclic(Order::RowMajor)),
                blocks("irregular([[0, 6], [0, 3]])", &irregular),
            ]),
        ),
        (
            "offsets",
            svg(&[
                offsets("block_cyclic([2, 2])", &cyclic(Order::RowMajor)),
                offsets("the same, ColumnMajor", &cyclic(Order::ColumnMajor)),
                offsets("tiled([2, 2])", &tiled),
            ]),
        ),
        ("halo", svg(&[elements("the array", &block(), subscript), part("the part of member 0", &padded)])),
    ];
    for (name, drawn) in pictures {
        assert!(!drawn.contains("\n\n"), "an empty line ends a block of HTML");
        let path = format!("{}/src/guide/pictures/{name}.svg", env!("CARGO_MANIFEST_DIR"));
        if env::var_os("GA_REDRAW").is_some() {
            fs::write(&path, &drawn).unwrap();
        }
        let kept = fs::read_to_string(&path).unwrap_or_default();
        assert!(kept == drawn, "{path} is not what the code draws: GA_REDRAW=1 cargo test --lib guide");
    }
}

#[test]
fn a_part_with_ghost_cells_has_no_hole() {
    let ghosts = Ghosts { widths: Dim([1, 1]), boundaries: vec![Boundary::Periodic; 2], corners: true };
    let padded = Distribution::block(&Dim(EXTENTS), MEMBERS, None, Order::RowMajor).unwrap().with_ghosts(ghosts).unwrap();
    let panel = part("", &padded);
    let mut places: Vec<_> = panel.cells.iter().map(|cell| cell.at).collect();
    places.sort_unstable();
    places.dedup();
    assert_eq!((places.len(), panel.cells.len()), (panel.rows * panel.columns, panel.rows * panel.columns));
}
