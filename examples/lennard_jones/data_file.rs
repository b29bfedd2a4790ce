//! LAMMPS data files, as `write_data` makes them: a title, a header of counts and the box, then sections.
//!
//! Read are `Masses`, `Pair Coeffs`, `PairIJ Coeffs` (of `lj/cut`: ε, σ, maybe the cut-off), `Atoms` of the styles atomic, charge, bond,
//! angle, molecular and full, and `Velocities`. Atoms stand in any order; their image flags do not matter, because the box is periodic.
//! What this program has no forces for is refused: other pair styles, bonds, charges, a triclinic box. The title that `write_data` makes
//! tells units, which must be `lj`, and the step.
//!
//! # Source
//! The LAMMPS manual, `read_data`.

use crate::read::{Lines, Problem, number};
use crate::species::{Coefficients, Kind, MOST_KINDS};
use crate::start::Start;

/// The file with this title.
pub(crate) fn parse(mut lines: Lines<'_>, title: &str) -> Result<Start, Problem> {
    let mut file = DataFile::default();
    for word in title.split(',').map(str::trim) {
        match word.split_once(" = ") {
            Some(("units", units)) if units != "lj" => {
                return Err(lines.problem(format!("units {units}: only lj, in which Boltzmann's constant is 1, are known")));
            }
            Some(("timestep", step)) => file.step = step.parse().unwrap_or(0),
            _ => {}
        }
    }
    let mut section = file.header(&mut lines)?;
    while let Some(Heading { name, comment }) = section {
        section = match &name[..] {
            "Masses" => file.masses(&mut lines)?,
            "Pair Coeffs" => file.coefficients(&mut lines, &comment, false)?,
            "PairIJ Coeffs" => file.coefficients(&mut lines, &comment, true)?,
            "Atoms" => file.atoms(&mut lines, &comment)?,
            "Velocities" => file.velocities(&mut lines)?,
            _ => return Err(lines.problem(format!("no section `{name}` is known: there are only forces between pairs of atoms"))),
        };
    }
    file.start()
}

/// The error for a file that has none of the formats.
const NOTHING_KNOWN: &str = "neither a LAMMPS dump, an extended XYZ file with `Lattice=` in its second line, nor a LAMMPS data file with `atoms` and `atom types` in its header";

/// The line that begins a section, and what it says behind `#`.
struct Heading {
    name: String,
    comment: String,
}

/// What has been read so far.
#[derive(Default)]
struct DataFile {
    step: u64,
    atoms: usize,
    types: usize,
    /// Both ends of each edge of the box.
    bounds: [Option<[f64; 2]>; 3],
    masses: Vec<Option<f64>>,
    coefficients: Vec<Coefficients<usize>>,
    /// Number, type and position.
    places: Vec<(usize, u16, [f64; 3])>,
    /// Number and velocity.
    velocities: Vec<(usize, [f64; 3])>,
}

/// A line of text without its comment, and the comment.
fn split(line: &str) -> (String, String) {
    let (text, comment) = line.split_once('#').unwrap_or((line, ""));
    (text.trim().to_owned(), comment.trim().to_owned())
}

/// The words of the next lines that say anything, up to the heading of the next section or the end of the file.
fn rows(
    lines: &mut Lines<'_>,
    mut each: impl FnMut(&Lines<'_>, &[&str]) -> Result<(), Problem>,
) -> Result<Option<Heading>, Problem> {
    while let Some(line) = lines.next_line()? {
        let (text, comment) = split(line);
        if text.is_empty() {
            continue;
        }
        if text.starts_with(|first: char| first.is_ascii_alphabetic()) {
            return Ok(Some(Heading { name: text, comment }));
        }
        let words: Vec<&str> = text.split_whitespace().collect();
        each(lines, &words)?;
    }
    Ok(None)
}

/// A whole number from 1 to `most`.
fn index(lines: &Lines<'_>, what: &str, word: Option<&&str>, most: usize) -> Result<usize, Problem> {
    let found = word.and_then(|word| word.parse().ok()).filter(|found| (1..=most).contains(found));
    let limit = if most == usize::MAX { String::new() } else { format!(" to {most}") };
    found.ok_or_else(|| lines.problem(format!("{what} from 1{limit} expected")))
}

/// The next words as three finite numbers.
fn vector(lines: &Lines<'_>, what: &str, words: Option<&[&str]>) -> Result<[f64; 3], Problem> {
    let numbers: Option<Vec<f64>> = words.and_then(|words| words.iter().map(|word| number(word)).collect());
    let found = numbers.and_then(|numbers| numbers.try_into().ok());
    found.ok_or_else(|| lines.problem(format!("{what} of an atom expected: three finite numbers")))
}

impl DataFile {
    fn header(&mut self, lines: &mut Lines<'_>) -> Result<Option<Heading>, Problem> {
        let heading = rows(lines, |lines, words| {
            let count = |word: &str| word.parse::<usize>().map_err(|_| lines.problem("a line of the header expected"));
            match *words {
                [word, "atoms"] => self.atoms = count(word)?,
                [word, "atom", "types"] => self.types = count(word)?,
                [xy, xz, yz, "xy", "xz", "yz"] if [xy, xz, yz].iter().all(|tilt| number(tilt) == Some(0.0)) => {}
                [_, _, _, "xy", "xz", "yz"] | [_, _, _, "avec" | "bvec" | "cvec"] => {
                    return Err(lines.problem("the box is triclinic: only cuboids along the axes are simulated"));
                }
                [low, high, "xlo", "xhi"] => self.bounds[0] = number(low).zip(number(high)).map(|(low, high)| [low, high]),
                [low, high, "ylo", "yhi"] => self.bounds[1] = number(low).zip(number(high)).map(|(low, high)| [low, high]),
                [low, high, "zlo", "zhi"] => self.bounds[2] = number(low).zip(number(high)).map(|(low, high)| [low, high]),
                [
                    word,
                    what @ ("bonds" | "angles" | "dihedrals" | "impropers" | "ellipsoids" | "lines" | "triangles" | "bodies"),
                ] => {
                    if count(word)? > 0 {
                        return Err(lines.problem(format!("there are {what}: only forces between pairs of atoms are known")));
                    }
                }
                [word, "bond" | "angle" | "dihedral" | "improper", "types"] => _ = count(word)?,
                // Room that LAMMPS keeps for more.
                [_, "extra", ..] => {}
                _ => return Err(lines.problem(NOTHING_KNOWN)),
            }
            Ok(())
        })?;
        if self.atoms == 0 && self.types == 0 {
            return Err(lines.problem(NOTHING_KNOWN));
        }
        if self.atoms == 0 || self.types == 0 || self.bounds.contains(&None) {
            return Err(lines.problem(
                "not a LAMMPS data file: its header has `atoms`, `atom types`, `xlo xhi`, `ylo yhi` and `zlo zhi`, all with finite numbers",
            ));
        }
        if self.types > MOST_KINDS {
            return Err(lines.problem(format!("{} types of atoms are too many: at most {MOST_KINDS}", self.types)));
        }
        self.masses = vec![None; self.types];
        Ok(heading)
    }

    fn masses(&mut self, lines: &mut Lines<'_>) -> Result<Option<Heading>, Problem> {
        rows(lines, |lines, words| {
            let kind = index(lines, "a type", words.first(), self.types)?;
            let mass = words.get(1).and_then(|word| number(word)).filter(|mass| *mass > 0.0);
            self.masses[kind - 1] = Some(mass.ok_or_else(|| lines.problem("a mass above 0 expected"))?);
            Ok(())
        })
    }

    /// Of one type with itself, or of two.
    fn coefficients(&mut self, lines: &mut Lines<'_>, style: &str, of_two: bool) -> Result<Option<Heading>, Problem> {
        // Other styles have as many numbers, with other meanings. The last word is how LAMMPS computes, not what.
        if !matches!(style, "" | "lj/cut" | "lj/cut/opt" | "lj/cut/omp" | "lj/cut/gpu" | "lj/cut/intel" | "lj/cut/kk") {
            return Err(lines.problem(format!("coefficients of pair style {style}: only lj/cut is known")));
        }
        rows(lines, |lines, words| {
            let first = index(lines, "a type", words.first(), self.types)?;
            let (second, rest) = match (of_two, words) {
                (true, [_, _, rest @ ..]) => (index(lines, "a type", words.get(1), self.types)?, rest),
                (false, [_, rest @ ..]) => (first, rest),
                _ => return Err(lines.problem("types and coefficients expected")),
            };
            let numbers: Option<Vec<f64>> = rest.iter().map(|word| number(word)).collect();
            let numbers = numbers.ok_or_else(|| lines.problem("the coefficients are no finite numbers"))?;
            let pair = Coefficients::new([first - 1, second - 1], &numbers).map_err(|problem| lines.problem(problem))?;
            self.coefficients.push(pair);
            Ok(())
        })
    }

    fn atoms(&mut self, lines: &mut Lines<'_>, style: &str) -> Result<Option<Heading>, Problem> {
        // Where the type, the charge and the position stand.
        let (kind, charge, at) = match style {
            "" | "atomic" => (1, None, 2),
            "charge" => (1, Some(2), 3),
            "bond" | "angle" | "molecular" => (2, None, 3),
            "full" => (2, Some(3), 4),
            _ => return Err(lines.problem(format!("atoms of style {style}: only points are known, without spins or shapes"))),
        };
        let types = self.types;
        rows(lines, |lines, words| {
            if ![at + 3, at + 6].contains(&words.len()) {
                let hint = if style.is_empty() { "; write the style behind `Atoms`, as in `Atoms # full`" } else { "" };
                return Err(lines.problem(format!("{} columns expected, or three more, not {}{hint}", at + 3, words.len())));
            }
            let atom = index(lines, "the number of an atom", words.first(), usize::MAX)?;
            let kind = index(lines, "a type", words.get(kind), types)?;
            if charge.is_some_and(|charge| number(words[charge]) != Some(0.0)) {
                return Err(lines.problem(format!("atom {atom} has a charge: there are no forces between charges")));
            }
            self.places.push((atom, kind as u16 - 1, vector(lines, "position", words.get(at..at + 3))?));
            Ok(())
        })
    }

    fn velocities(&mut self, lines: &mut Lines<'_>) -> Result<Option<Heading>, Problem> {
        rows(lines, |lines, words| {
            let atom = index(lines, "the number of an atom", words.first(), usize::MAX)?;
            self.velocities.push((atom, vector(lines, "velocity", words.get(1..))?));
            Ok(())
        })
    }

    fn start(mut self) -> Result<Start, Problem> {
        /// Each of `count` atoms once, in their order.
        fn whole<T>(what: &str, count: usize, rows: &mut [T], of: impl Fn(&T) -> usize) -> Result<(), Problem> {
            rows.sort_by_key(&of);
            if let Some(twice) = rows.windows(2).find(|pair| of(&pair[0]) == of(&pair[1])) {
                return Err((None, format!("atom {} stands twice in section `{what}`", of(&twice[0]))));
            }
            if rows.len() != count {
                return Err((None, format!("section `{what}` has {} of {count} atoms", rows.len())));
            }
            Ok(())
        }
        whole("Atoms", self.atoms, &mut self.places, |row| row.0)?;
        if !self.velocities.is_empty() {
            whole("Velocities", self.atoms, &mut self.velocities, |row| row.0)?;
            if let Some((_, velocity)) = self.places.iter().zip(&self.velocities).find(|(place, velocity)| place.0 != velocity.0)
            {
                return Err((None, format!("atom {} has a velocity, but no place", velocity.0)));
            }
        }
        let bounds = self.bounds.map(Option::unwrap_or_default);
        let (origin, lengths) = (bounds.map(|[low, _]| low), bounds.map(|[low, high]| high - low));
        // A type without atoms needs no potential.
        let mut kinds: Vec<u16> = self.places.iter().map(|row| row.1).collect();
        kinds.sort_unstable();
        kinds.dedup();
        let place = |kind: usize| kinds.iter().position(|&used| usize::from(used) == kind);
        let coefficients = self.coefficients.iter().filter_map(|pair| {
            let [a, b] = pair.kinds;
            Some(Coefficients { kinds: [place(a)?, place(b)?], ..pair.clone() })
        });
        let kind = |&kind: &u16| Kind { name: (kind + 1).to_string(), mass: self.masses[usize::from(kind)] };
        Ok(Start {
            origin,
            lengths,
            positions: self.places.iter().map(|row| std::array::from_fn(|d| row.2[d] - origin[d])).collect(),
            velocities: self.velocities.iter().map(|row| row.1).collect(),
            kind_of: self.places.iter().map(|row| place(usize::from(row.1)).unwrap_or_default() as u16).collect(),
            coefficients: coefficients.collect(),
            kinds: kinds.iter().map(kind).collect(),
            step: self.step,
            ..Start::default()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::read::tests::lines;

    const HEADER: &str = "\n2 atoms # both\n3 atom types\n0 bonds\n\n-1 4 xlo xhi\n0 5 ylo yhi\n0 5 zlo zhi\n\n";

    fn of(rest: &str) -> Result<Start, Problem> {
        parse(lines(&format!("{HEADER}{rest}")), "title")
    }

    #[test]
    fn sections_in_any_order() {
        let text = "Velocities\n\n2 4 5 6\n1 1 2 3\n\nMasses\n\n1 1\n2 7\n3 2.5 # heavy\n\nPairIJ Coeffs # lj/cut\n\n\
                    1 3 1.5 0.8 2\n3 3 0.5 0.88\n2 3 9 9\n\nAtoms # atomic\n\n2 1 4.5 0 0 1 0 -1\n1 3 -0.5 1 2 0 0 0\n";
        let start = of(text).unwrap();
        assert_eq!((start.origin, start.lengths), ([-1.0, 0.0, 0.0], [5.0; 3]));
        assert_eq!(start.positions, [[0.5, 1.0, 2.0], [5.5, 0.0, 0.0]]);
        assert_eq!((start.velocities, start.kind_of), (vec![[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], vec![1, 0]));
        // Type 2 has no atoms.
        let kinds: Vec<(&str, Option<f64>)> = start.kinds.iter().map(|kind| (&kind.name[..], kind.mass)).collect();
        assert_eq!(kinds, [("1", Some(1.0)), ("3", Some(2.5))]);
        let mixed = Coefficients { kinds: [0, 1], epsilon: 1.5, sigma: 0.8, cutoff: Some(2.0) };
        let heavy = Coefficients { kinds: [1, 1], epsilon: 0.5, sigma: 0.88, cutoff: None };
        assert_eq!(start.coefficients, [mixed, heavy]);
    }

    #[test]
    fn titles_tell_units_and_the_step() {
        let text = format!("{HEADER}0 0 0 xy xz yz\nPair Coeffs # lj/cut\n\n1 1 1\n\nAtoms\n\n9 1 1 2 3\n4 2 0 0 0\n");
        let of = |title: &str| parse(lines(&text), title);
        let start = of("LAMMPS data file via write_data, version 2 Aug 2023, timestep = 300, units = lj").unwrap();
        // Of two atoms with any numbers, the lower one comes first.
        assert_eq!((start.step, start.kind_of), (300, vec![1, 0]));
        assert!(of("LAMMPS data file, units = real").unwrap_err().1.contains("units real"));
    }

    #[test]
    fn styles_of_atoms() {
        for text in [
            "Atoms\n\n1 1 1 2 3\n2 2 1 2 3\n",
            "Atoms # charge\n\n1 1 0 1 2 3\n2 2 0.0 1 2 3\n",
            "Atoms # molecular\n\n1 9 1 1 2 3\n2 9 2 1 2 3\n",
            "Atoms # full\n\n1 9 1 0 1 2 3 0 0 0\n2 9 2 0 1 2 3 0 0 0\n",
        ] {
            let start = of(text).unwrap();
            assert_eq!((start.positions, start.kind_of), (vec![[2.0, 2.0, 3.0]; 2], vec![0, 1]), "{text}");
        }
    }

    #[test]
    fn mistakes_are_told() {
        let problem = |rest| of(rest).unwrap_err().1;
        assert!(problem("").contains("`Atoms` has 0 of 2"));
        assert!(problem("Atoms\n\n1 1 1 2 3\n").contains("`Atoms` has 1 of 2"));
        assert!(problem("Atoms\n\n1 1 1 2 3\n1 1 1 2 3\n").contains("atom 1 stands twice"));
        assert!(problem("Atoms\n\n0 1 1 2 3\n").contains("the number of an atom from 1 expected"));
        assert!(problem("Atoms\n\n1 1 1 2 3\n7 1 1 2 3\n\nVelocities\n\n1 0 0 0\n2 0 0 0\n").contains("atom 2 has a velocity"));
        assert!(problem("Pair Coeffs # buck\n\n1 1 1 1\n").contains("pair style buck"));
        assert!(problem("Pair Coeffs # lj/cut/coul/long\n\n1 1 1\n").contains("pair style lj/cut/coul/long"));
        assert!(problem("Atoms\n\n1 4 1 2 3\n").contains("a type from 1 to 3"));
        assert!(problem("Atoms\n\n1 1 1 2 x\n").contains("three finite numbers"));
        assert!(problem("Atoms\n\n1 9 1 1 2 3\n").contains("`Atoms # full`"));
        assert!(problem("Atoms # sphere\n\n1 1 1 1 1 2 3\n").contains("style sphere"));
        assert!(problem("Atoms # charge\n\n1 1 0.5 1 2 3\n").contains("atom 1 has a charge"));
        assert!(problem("Bonds\n\n1 1 1 2\n").contains("section `Bonds`"));
        assert!(problem("Masses\n\n1 0\n").contains("a mass above 0"));
        assert!(problem("Pair Coeffs\n\n1 1\n").contains("epsilon, sigma"));
        assert!(problem("3 angles\n").contains("there are angles"));
        assert!(problem("0.1 0 0 xy xz yz\n").contains("triclinic"));
        assert!(problem("what is this\n").contains("section `what is this`"));
        assert!(problem("1 2 3\n").contains("neither"));
        let parse = |text| parse(lines(text), "title");
        assert!(parse("what is this\n").unwrap_err().1.contains("neither a LAMMPS dump"));
        assert!(parse("").unwrap_err().1.contains("neither a LAMMPS dump"));
        assert!(parse("\n2 atoms\n").unwrap_err().1.contains("not a LAMMPS data file"));
        assert!(parse("\n2 atoms\n1 atom types\n0 nan xlo xhi\n").unwrap_err().1.contains("finite"));
    }
}
