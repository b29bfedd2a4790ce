//! LAMMPS dumps: frames of `ITEM:` sections, columns by name.
//!
//! Atoms stand in any order and have an `id`, by which they are sorted. Positions are `x y z` or `xu yu zu`, in the box or outside, or parts of
//! the box as `xs ys zs` or `xsu ysu zsu`. Velocities `vx vy vz` may be missing. The kind of an atom is its `type`, else its `element`; the
//! masses may be in `mass`. The box must be a periodic cuboid, of whatever shape LAMMPS takes it for, and units, if the dump tells them, `lj`.
//!
//! # Source
//! The LAMMPS manual, `dump` and `dump_modify`.

use crate::read::{Census, Lines, NAMELESS, Problem, number};
use crate::species::Kind;
use crate::start::Start;

/// One frame: its box, and the columns by number of atom.
struct Frame {
    origin: [f64; 3],
    lengths: [f64; 3],
    step: u64,
    time: Option<f64>,
    columns: Vec<String>,
    rows: Vec<Vec<f64>>,
    kind_of: Vec<u16>,
    kinds: Vec<Kind>,
}

impl Frame {
    /// Three columns for each atom, if they are there.
    fn vectors(&self, names: [&str; 3]) -> Option<Vec<[f64; 3]>> {
        let mut at = [0; 3];
        for (at, name) in at.iter_mut().zip(names) {
            *at = self.columns.iter().position(|column| column == name)?;
        }
        Some(self.rows.iter().map(|row| at.map(|at| row[at])).collect())
    }
}

/// The last frame, after its first line.
pub(crate) fn parse(lines: Lines<'_>, first: &str) -> Result<Start, Problem> {
    let frame = last(lines, first)?;
    let absolute = frame.vectors(["x", "y", "z"]).or_else(|| frame.vectors(["xu", "yu", "zu"]));
    let scaled = || frame.vectors(["xs", "ys", "zs"]).or_else(|| frame.vectors(["xsu", "ysu", "zsu"]));
    let mut positions = match absolute {
        Some(mut positions) => {
            positions.iter_mut().for_each(|at| *at = std::array::from_fn(|d| at[d] - frame.origin[d]));
            positions
        }
        None => {
            let missing = || (None, "there are no columns `x y z`, `xu yu zu`, `xs ys zs` or `xsu ysu zsu`".to_owned());
            let mut positions = scaled().ok_or_else(missing)?;
            positions.iter_mut().for_each(|at| *at = std::array::from_fn(|d| at[d] * frame.lengths[d]));
            positions
        }
    };
    positions.shrink_to_fit();
    let velocities = frame.vectors(["vx", "vy", "vz"]).unwrap_or_default();
    let Frame { origin, lengths, step, time, kind_of, kinds, .. } = frame;
    Ok(Start { origin, lengths, positions, velocities, kind_of, kinds, step, time, ..Start::default() })
}

/// The forces of the last frame, by number of atom.
pub(crate) fn forces(mut lines: Lines<'_>) -> Result<Vec<[f64; 3]>, Problem> {
    let first = lines.expect("`ITEM: TIMESTEP`")?.to_owned();
    last(lines, &first)?.vectors(["fx", "fy", "fz"]).ok_or((None, "there are no columns `fx fy fz`".into()))
}

/// Blank lines may stand between frames; all else is a frame or an error.
fn last(mut lines: Lines<'_>, first: &str) -> Result<Frame, Problem> {
    let mut header = first.to_owned();
    loop {
        let frame = frame(&mut lines, &header)?;
        match lines.next_filled()? {
            Some(line) => header = line.to_owned(),
            None => return Ok(frame),
        }
    }
}

fn frame(lines: &mut Lines<'_>, header: &str) -> Result<Frame, Problem> {
    let mut header = header.to_owned();
    let mut time = None;
    while header == "ITEM: UNITS" || header == "ITEM: TIME" {
        let value = lines.expect("a value")?.to_owned();
        if header == "ITEM: TIME" {
            time = Some(number(&value).ok_or_else(|| lines.problem("the time is no finite number"))?);
        } else if value != "lj" {
            return Err(lines.problem(format!("units {value}: only lj, in which Boltzmann's constant is 1, are known")));
        }
        header = lines.expect("`ITEM: TIMESTEP`")?.to_owned();
    }
    section(lines, &header, "ITEM: TIMESTEP")?;
    let step = lines.expect("the time step")?.parse::<u64>();
    let step = step.map_err(|_| lines.problem("the time step expected: a whole number"))?;
    let header = lines.expect("`ITEM: NUMBER OF ATOMS`")?.to_owned();
    section(lines, &header, "ITEM: NUMBER OF ATOMS")?;
    let count = lines.expect("the number of atoms")?.parse::<usize>();
    let count = count.map_err(|_| lines.problem("the number of atoms expected: a whole number"))?;
    let (origin, lengths) = bounds(lines)?;
    let header = lines.expect("`ITEM: ATOMS`")?.to_owned();
    section(lines, &header, "ITEM: ATOMS")?;
    let columns: Vec<String> = header.split_whitespace().skip(2).map(str::to_owned).collect();
    let id = columns.iter().position(|column| column == "id").ok_or_else(|| lines.problem("there is no column `id`"))?;
    let column = |name: &str| columns.iter().position(|column| column == name);
    let (name, mass) = (column("type").or_else(|| column("element")), column("mass"));
    let mut rows: Vec<(u64, u16, Vec<f64>)> = Vec::new();
    let mut census = Census::default();
    for _ in 0..count {
        let line = lines.expect("an atom")?;
        let word = |at: Option<usize>| at.and_then(|at| line.split_whitespace().nth(at));
        let kind = census.add(word(name).unwrap_or(NAMELESS), word(mass));
        // Elements' names and the like are no numbers, and nobody asks for them.
        let row: Vec<f64> = line.split_whitespace().map(|word| number(word).unwrap_or(f64::NAN)).collect();
        // The largest is 2⁶³ − 1, which floating-point numbers do not tell from its neighbors.
        let found = word(Some(id)).unwrap_or_default();
        let number = found
            .parse::<u64>()
            .ok()
            .filter(|number| (1..=i64::MAX as u64).contains(number))
            .ok_or_else(|| format!("atom {found}: a whole number from 1 to {} is expected", i64::MAX));
        if row.len() != columns.len() {
            return Err(lines.problem(format!("{} columns expected, not {}", columns.len(), row.len())));
        }
        let kind = kind.map_err(|problem| lines.problem(problem))?;
        let wanted = |column: &str| {
            let vectors = ["x y z", "xu yu zu", "xs ys zs", "xsu ysu zsu", "vx vy vz", "fx fy fz"];
            vectors.iter().any(|vector| vector.split(' ').any(|name| name == column))
        };
        if let Some(at) = (0..row.len()).find(|&at| row[at].is_nan() && wanted(&columns[at])) {
            return Err(lines.problem(format!("column `{}` is no finite number", columns[at])));
        }
        rows.push((number.map_err(|problem| lines.problem(problem))?, kind, row));
    }
    rows.sort_by_key(|row| row.0);
    if let Some(twice) = rows.windows(2).find(|pair| pair[0].0 == pair[1].0) {
        return Err((None, format!("atom {} stands there twice", twice[0].0)));
    }
    let kind_of = rows.iter().map(|row| row.1).collect();
    let rows = rows.into_iter().map(|row| row.2).collect();
    Ok(Frame { origin, lengths, step, time, columns, rows, kind_of, kinds: census.kinds() })
}

/// The corner of the box and its edges. A box that may be triclinic has three tilts, or three edges as vectors.
fn bounds(lines: &mut Lines<'_>) -> Result<([f64; 3], [f64; 3]), Problem> {
    let header = lines.expect("`ITEM: BOX BOUNDS pp pp pp`")?.to_owned();
    section(lines, &header, "ITEM: BOX BOUNDS")?;
    let words: Vec<&str> = header.split_whitespace().skip(3).collect();
    let (shape, sides) = words.split_at(words.len().saturating_sub(3));
    if sides != ["pp"; 3] {
        return Err(lines.problem(format!("`{header}`: the box must be periodic along all axes, `pp pp pp`")));
    }
    let (mut origin, mut lengths) = ([0.0; 3], [0.0; 3]);
    for d in 0..3 {
        let what = "the bounds of the box";
        let (low, edge, skew) = match shape {
            [] => {
                let [low, high] = lines.numbers(what)?;
                (low, high - low, [0.0; 3])
            }
            ["xy", "xz", "yz"] => {
                let [low, high, tilt] = lines.numbers(what)?;
                (low, high - low, [tilt, 0.0, 0.0])
            }
            ["abc", "origin"] => {
                let [mut vector @ .., low]: [f64; 4] = lines.numbers(what)?;
                (low, std::mem::take(&mut vector[d]), vector)
            }
            _ => return Err(lines.problem(format!("`{header}`: neither two bounds, `xy xz yz` nor `abc origin`"))),
        };
        if skew != [0.0; 3] {
            return Err(lines.problem("the box is triclinic: only cuboids along the axes are simulated"));
        }
        (origin[d], lengths[d]) = (low, edge);
    }
    Ok((origin, lengths))
}

fn section(lines: &Lines<'_>, header: &str, expected: &str) -> Result<(), Problem> {
    if header.starts_with(expected) { Ok(()) } else { Err(lines.problem(format!("`{expected}` expected"))) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::read::tests::lines;

    const HEAD: &str = "0\nITEM: NUMBER OF ATOMS\n2\nITEM: BOX BOUNDS pp pp pp\n1 5\n0 4\n0 4\n";

    fn of(rest: &str) -> Result<Start, Problem> {
        parse(lines(&format!("{HEAD}{rest}")), "ITEM: TIMESTEP")
    }

    #[test]
    fn columns_are_found_by_name_and_atoms_by_number() {
        let start = of("ITEM: ATOMS element z id x y vx vy vz\nAr 3 2 1 2 4 5 6\nAr 3.5 1 1.5 2.5 7 8 9\n").unwrap();
        assert_eq!((start.origin, start.lengths), ([1.0, 0.0, 0.0], [4.0; 3]));
        assert_eq!(start.positions, [[0.5, 2.5, 3.5], [0.0, 2.0, 3.0]]);
        assert_eq!(start.velocities, [[7.0, 8.0, 9.0], [4.0, 5.0, 6.0]]);
        assert_eq!(of("ITEM: ATOMS id xu yu zu\n1 0 0 0\n2 5 4 9\n").unwrap().positions, [[-1.0, 0.0, 0.0], [4.0, 4.0, 9.0]]);
    }

    #[test]
    fn numbers_of_atoms_are_whole_numbers_up_to_2_63() {
        let of = |numbers: [&str; 2]| of(&format!("ITEM: ATOMS id x y z\n{} 2 0 0\n{} 3 0 0\n", numbers[0], numbers[1]));
        for numbers in [["9007199254740993", "9007199254740992"], ["9223372036854775807", "9223372036854775806"], ["+2", "1"]] {
            assert_eq!(of(numbers).unwrap().positions, [[2.0, 0.0, 0.0], [1.0, 0.0, 0.0]], "{numbers:?}");
        }
        for wrong in ["0", "-1", "1.5", "9223372036854775808", "Ar", "nan"] {
            assert!(of(["1", wrong]).unwrap_err().1.starts_with(&format!("atom {wrong}: a whole number")), "{wrong}");
        }
        assert!(of(["9007199254740993", "9007199254740993"]).unwrap_err().1.contains("atom 9007199254740993 stands there twice"));
    }

    #[test]
    fn boxes_that_may_be_triclinic_are_read_if_they_are_not() {
        let cuboid = of("ITEM: ATOMS id x y z\n1 1 2 3\n2 4 1 1\n").unwrap();
        for (header, rows) in
            [("xy xz yz pp pp pp", "1 5 0\n0 4 0.0\n0 4 -0\n"), ("abc origin pp pp pp", "4 0 0 1\n0 4 0 0\n0 0 4 0\n")]
        {
            let text = HEAD.replace("pp pp pp", header).replace("1 5\n0 4\n0 4\n", rows);
            let text = format!("{text}ITEM: ATOMS id x y z\n1 1 2 3\n2 4 1 1\n");
            assert_eq!(parse(lines(&text), "ITEM: TIMESTEP").unwrap(), cuboid, "{header}");
        }
    }

    #[test]
    fn the_last_frame_counts() {
        let frame = |x: f64| format!("ITEM: TIMESTEP\n{HEAD}ITEM: ATOMS id x y z\n1 {x} 0 0\n2 2 2 2\n");
        let of = |text: &str| parse(lines(text.strip_prefix("ITEM: TIMESTEP\n").unwrap()), "ITEM: TIMESTEP");
        for between in ["", "\n", " \n\t\n\n"] {
            let start = of(&(frame(1.5) + between + &frame(2.5) + between)).unwrap();
            assert_eq!(start.positions[0], [1.5, 0.0, 0.0], "{between:?}");
            let (line, problem) = of(&(frame(1.5) + between + "end\n")).unwrap_err();
            assert_eq!((line, &problem[..]), (Some(11 + between.matches('\n').count() as u64), "`ITEM: TIMESTEP` expected"));
        }
    }

    #[test]
    fn mistakes_are_told() {
        let problem = |rest| of(rest).unwrap_err().1;
        assert!(problem("").contains("ends"));
        assert!(problem("ITEM: ATOMS x y z\n").contains("`id`"));
        assert!(problem("ITEM: ATOMS id x y\n1 0 0\n2 0 0\n").contains("no columns"));
        assert!(problem("ITEM: ATOMS id x y z\n1 2 0 0\n").contains("ends"));
        assert!(problem("ITEM: ATOMS id x y z\n1 2 0\n2 2 0 0\n").contains("4 columns"));
        assert!(problem("ITEM: ATOMS id x y z\n1 2 0 b\n2 2 0 0\n").contains("`z`"));
        assert!(problem("ITEM: ATOMS id x y z\n1 2 0 0\n1 2 0 0\n").contains("twice"));
        assert!(problem("ITEM: ATOMS id x y z\n1 2 0 0\n0 2 0 0\n").contains("atom 0: a whole number"));
        assert!(problem("ITEM: ATOMS id mass x y z\n1 1 2 0 0\n2 4 2 0 0\n").contains("mass 4, one before it 1"));
        assert!(problem("ITEM: ATOMS id xs ys zs\n1 0 0 0\n2 0 b 0\n").contains("`ys`"));
        let open = HEAD.replace("pp pp pp", "ff pp pp");
        assert!(parse(lines(&open), "ITEM: TIMESTEP").err().unwrap().1.contains("pp pp pp"));
        let bounds = |header: &str, rows: &str| {
            let text = HEAD.replace("pp pp pp", header).replace("1 5\n0 4\n0 4\n", rows);
            parse(lines(&text), "ITEM: TIMESTEP").unwrap_err()
        };
        for (header, rows) in
            [("xy xz yz pp pp pp", "1 5 0\n0 4 1e-3\n0 4 0\n"), ("abc origin pp pp pp", "4 0 0 1\n-1 4 0 0\n0 0 4 0\n")]
        {
            let (line, problem) = bounds(header, rows);
            assert!(line == Some(6) && problem.contains("triclinic"), "{problem}");
        }
        assert!(bounds("xy xz yz pp pp pp", "1 5\n0 4\n0 4\n").1.contains("3 finite numbers"));
        assert!(bounds("xy xz yz pp pp pf", "1 5 0\n0 4 0\n0 4 0\n").1.contains("`pp pp pp`"));
        assert!(bounds("xyz pp pp pp", "").1.contains("`xy xz yz`"));
        assert!(bounds("", "1 5\n0 4\n0 4\n").1.contains("`pp pp pp`"));
        assert!(parse(lines("real\n"), "ITEM: UNITS").err().unwrap().1.contains("units real"));
    }

    #[test]
    fn kinds_and_masses() {
        let start = of("ITEM: ATOMS id type element mass x y z\n2 3 Kr 2.5 2 0 0\n1 1 Ar 1 2 0 0\n").unwrap();
        let names: Vec<(&str, Option<f64>)> = start.kinds.iter().map(|kind| (&kind.name[..], kind.mass)).collect();
        assert_eq!((names, start.kind_of), (vec![("3", Some(2.5)), ("1", Some(1.0))], vec![1, 0]));
        let start = of("ITEM: ATOMS id element x y z\n1 Ar 2 0 0\n2 Kr 2 0 0\n").unwrap();
        assert!(start.kinds.iter().map(|kind| &kind.name[..]).eq(["Ar", "Kr"]));
    }

    #[test]
    fn parts_of_the_box_units_and_time() {
        let text = format!("lj\nITEM: TIME\n1.5\nITEM: TIMESTEP\n3{HEAD}ITEM: ATOMS id xs ys zs\n1 0.5 0.25 1\n2 -0.25 0 0\n");
        let start = parse(lines(&text), "ITEM: UNITS").unwrap();
        assert_eq!((start.step, start.time), (30, Some(1.5)));
        assert_eq!(start.positions, [[2.0, 1.0, 4.0], [-1.0, 0.0, 0.0]]);
    }
}
