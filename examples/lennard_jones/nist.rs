//! NIST's sample configurations: a line with the edges of the box, one with the number of atoms, then for each atom its number
//! and position, relative to the middle of the box.
//!
//! # Source
//! NIST Standard Reference Simulation Website, SRD 173, doi:10.18434/T4M88Q, "Lennard-Jones Fluid Reference Calculations".

use crate::read::{Lines, NAMELESS, Problem};
use crate::species::Kind;
use crate::start::Start;

pub(crate) fn parse(mut lines: Lines<'_>) -> Result<Start, Problem> {
    let lengths: [f64; 3] = lines.numbers("the edges of the box")?;
    let count = lines.expect("the number of atoms")?.parse::<usize>();
    let count = count.map_err(|_| lines.problem("the number of atoms expected: a whole number"))?;
    let mut positions = Vec::new();
    for atom in 1..=count {
        let [number, at @ ..]: [f64; 4] = lines.numbers("number and position of an atom")?;
        if number != atom as f64 {
            return Err(lines.problem(format!("atom {atom} expected, not {number}")));
        }
        positions.push(std::array::from_fn(|d| at[d] + 0.5 * lengths[d]));
    }
    if lines.next_filled()?.is_some() {
        return Err(lines.problem(format!("more than the {count} atoms announced")));
    }
    let (kind_of, kinds) = (vec![0; positions.len()], vec![Kind { name: NAMELESS.into(), mass: None }]);
    Ok(Start { origin: lengths.map(|edge| -0.5 * edge), lengths, positions, kind_of, kinds, ..Start::default() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::read::tests::lines;

    #[test]
    fn a_small_file() {
        let start = parse(lines(" 4 4 6\n 2\n 1 -2.0 0 1e0\n 2 1 1 1\n\n")).unwrap();
        assert_eq!((start.origin, start.lengths), ([-2.0, -2.0, -3.0], [4.0, 4.0, 6.0]));
        assert_eq!(start.positions, [[0.0, 2.0, 4.0], [3.0, 3.0, 4.0]]);
    }

    #[test]
    fn mistakes_have_a_line() {
        let problem = |text| parse(lines(text)).unwrap_err();
        assert_eq!(problem("").0, Some(1));
        assert_eq!(problem("4 4\n").0, Some(1));
        assert!(problem("4 4 4\nx\n").1.contains("whole number"));
        assert!(problem("4 4 4\n2\n1 0 0 0\n").1.contains("ends"));
        assert!(problem("4 4 4\n2\n1 0 0 0\n3 0 0 0\n").1.contains("atom 2"));
        assert!(problem("4 4 4\n1\n1 0 nan 0\n").1.contains("finite"));
        assert!(problem("4 4 4\n1\n1 0 0 0\n2 0 0 0\n").1.contains("more than"));
        assert!(problem("4 4 4\n18446744073709551615\n1 0 0 0\n").1.contains("ends"));
    }
}
