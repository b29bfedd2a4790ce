//! Extended XYZ: for each frame a line with the number of atoms, one of `Key=value` pairs, and a line for each atom.
//!
//! Read are `Lattice="…"` (nine numbers, a cuboid along the axes), `Origin="…"` (three, by default 0) and `Properties=…` with
//! `pos:R:3` and maybe `velo:R:3`. `species`, `type` and `Z`, if they are there, must be the same for all atoms, and `mass` must be
//! 1; other properties are skipped. What [`frame`] writes is read to the last bit where the box begins at 0.
//!
//! # Source
//! libAtoms, *Extended XYZ specification*, github.com/libAtoms/extxyz.

use std::fmt::Write;

use crate::read::{Kind, Lines, Problem, number};
use crate::start::Start;

/// The last frame of a file, after its first line.
pub(crate) fn parse(mut lines: Lines<'_>, first: &str) -> Result<Start, Problem> {
    let mut header = first.to_owned();
    loop {
        let start = one(&mut lines, &header)?;
        match lines.next()? {
            Some(line) if !line.is_empty() => header = line.to_owned(),
            _ => return Ok(start),
        }
    }
}

fn one(lines: &mut Lines<'_>, header: &str) -> Result<Start, Problem> {
    let count: usize =
        header.parse().map_err(|_| lines.problem("neither a LAMMPS dump nor the number of atoms of an XYZ file"))?;
    let comment = lines.expect("the line with Lattice and Properties")?.to_owned();
    let value = |key: &str| value(&comment, key).ok_or_else(|| lines.problem(format!("`{key}=` is missing")));
    let vector = |text: &str| text.split_whitespace().map(number).collect::<Option<Vec<f64>>>();
    let lattice = vector(value("Lattice")?);
    let Some([x, a, b, c, y, d, e, f, z]) = lattice.as_deref().and_then(|l| <[f64; 9]>::try_from(l).ok()) else {
        return Err(lines.problem("Lattice has not nine finite numbers"));
    };
    if [a, b, c, d, e, f].iter().any(|&off| off != 0.0) {
        return Err(lines.problem("the box is no cuboid along the axes"));
    }
    let origin = match self::value(&comment, "Origin") {
        None => [0.0; 3],
        Some(text) => vector(text)
            .and_then(|origin| origin.try_into().ok())
            .ok_or_else(|| lines.problem("Origin has not three finite numbers"))?,
    };
    let columns = columns(value("Properties")?).ok_or_else(|| lines.problem("Properties cannot be read"))?;
    let at = columns.iter().find(|column| column.name == "pos" && column.count == 3);
    let at = at.ok_or_else(|| lines.problem("Properties have no pos:R:3"))?.first;
    let velocity = columns.iter().find(|column| column.name == "velo" && column.count == 3).map(|column| column.first);
    let (mut positions, mut velocities, mut kind) = (Vec::new(), Vec::new(), Kind::default());
    for _ in 0..count {
        let words: Vec<&str> = lines.expect("an atom")?.split_whitespace().collect();
        let vector = |first: usize| -> Option<[f64; 3]> {
            let words = words.get(first..first + 3)?;
            Some([number(words[0])?, number(words[1])?, number(words[2])?])
        };
        let one_kind = columns
            .iter()
            .filter(|column| column.count == 1)
            .try_for_each(|column| words.get(column.first).map_or(Ok(()), |word| kind.check(column.name, word)));
        let (position, velocity) = (vector(at), velocity.map(vector));
        let (Some(position), Some(velocity)) = (position, velocity.map_or(Some(None), |v| v.map(Some))) else {
            return Err(lines.problem("position and velocity of an atom expected as finite numbers"));
        };
        one_kind.map_err(|problem| lines.problem(problem))?;
        positions.push(std::array::from_fn(|d| position[d] - origin[d]));
        velocities.extend(velocity);
    }
    Ok(Start { origin, lengths: [x, y, z], positions, velocities })
}

/// The value of a key, without the quotes around it.
fn value<'a>(comment: &'a str, key: &str) -> Option<&'a str> {
    let starts = |&(at, _): &(usize, &str)| at == 0 || comment[..at].ends_with([' ', '\t']);
    let (at, _) = comment.match_indices(&format!("{key}=")).find(starts)?;
    let rest = &comment[at + key.len() + 1..];
    match rest.strip_prefix('"') {
        Some(quoted) => quoted.split('"').next(),
        None => rest.split_whitespace().next(),
    }
}

/// A property and where its words stand in the line of an atom.
struct Column<'a> {
    name: &'a str,
    first: usize,
    count: usize,
}

fn columns(properties: &str) -> Option<Vec<Column<'_>>> {
    let words: Vec<&str> = properties.split(':').collect();
    let mut first = 0_usize;
    let mut columns = Vec::new();
    for triple in words.chunks(3) {
        let count: usize = triple.get(2)?.parse().ok().filter(|count| *count <= 1000)?;
        columns.push(Column { name: triple[0], first, count });
        first += count;
    }
    Some(columns)
}

/// A frame, ready to be appended to a file.
pub(crate) fn frame(start: &Start, step: usize, time: f64) -> String {
    let ([x, y, z], [ox, oy, oz]) = (start.lengths, start.origin);
    let mut text = String::with_capacity(140 * (start.positions.len() + 2));
    // Rust writes the fewest digits that read back as the same number. A String takes everything.
    let _ = writeln!(text, "{}", start.positions.len());
    let _ = writeln!(
        text,
        "Lattice=\"{x} 0 0 0 {y} 0 0 0 {z}\" Origin=\"{ox} {oy} {oz}\" pbc=\"T T T\" \
         Properties=species:S:1:pos:R:3:velo:R:3 Step={step} Time={time}"
    );
    for (at, v) in start.positions.iter().zip(&start.velocities) {
        let at: [f64; 3] = std::array::from_fn(|d| at[d] + start.origin[d]);
        let _ = writeln!(text, "Ar {:?} {:?} {:?} {:?} {:?} {:?}", at[0], at[1], at[2], v[0], v[1], v[2]);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::read::tests::lines;

    #[test]
    fn what_is_written_is_read() {
        let (positions, velocities) = (vec![[0.1, 0.2, 1.0 / 3.0], [1.5, 0.0, 2.0]], vec![[-1e-17, 2.0, 3.0], [0.3, 0.7, 1e9]]);
        let start = Start { origin: [0.0; 3], lengths: [2.0, 3.0, 4.0], positions, velocities };
        let text = frame(&start, 1, 0.005) + &frame(&start, 2, 0.01);
        let (first, rest) = text.split_once('\n').unwrap();
        assert_eq!(parse(lines(rest), first).unwrap(), start);
    }

    #[test]
    fn mistakes_are_told() {
        let problem = |rest| parse(lines(rest), "1").unwrap_err().1;
        assert!(parse(lines(""), "one").unwrap_err().1.contains("neither"));
        let two = |properties: &str, atoms: &str| {
            let text = format!("Lattice=\"2 0 0 0 2 0 0 0 2\" Properties={properties}:pos:R:3\n{atoms}");
            parse(lines(&text), "2").map_err(|problem| problem.1)
        };
        assert!(two("species:S:1", "Ar 0 0 0\nKr 1 1 1\n").unwrap_err().contains("`species` Kr after Ar"));
        assert!(two("type:I:1", "1 0 0 0\n2 1 1 1\n").unwrap_err().contains("`type` 2 after 1"));
        assert!(two("mass:R:1", "1 0 0 0\n2.5 1 1 1\n").unwrap_err().contains("`mass` 2.5"));
        assert!(two("species:S:1:mass:R:1", "Ar 1.0 0 0 0\nAr 1 1 1 1\n").is_ok());
        assert!(problem("no lattice\nAr 0 0 0\n").contains("Lattice"));
        assert!(problem("Lattice=\"2 0 0 0 2 0 0 0\"\n").contains("nine"));
        assert!(problem("Lattice=\"2 1 0 0 2 0 0 0 2\"\n").contains("cuboid"));
        assert!(problem("Lattice=\"2 0 0 0 2 0 0 0 2\"\n").contains("Properties"));
        assert!(problem("Lattice=\"2 0 0 0 2 0 0 0 2\" Properties=pos:R\n").contains("Properties"));
        assert!(problem("Lattice=\"2 0 0 0 2 0 0 0 2\" Properties=velo:R:3\n").contains("pos:R:3"));
        assert!(problem("Lattice=\"2 0 0 0 2 0 0 0 2\" Properties=pos:R:3\n").contains("ends"));
        assert!(problem("Lattice=\"2 0 0 0 2 0 0 0 2\" Properties=pos:R:3\n0 0 x\n").contains("finite"));
    }
}
