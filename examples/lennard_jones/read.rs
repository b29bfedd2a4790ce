//! Files with atoms: NIST's sample configurations, LAMMPS dumps and data files, extended XYZ; and the two tables that runs are compared
//! with.
//!
//! Each format has a file of its own. Here is what they share: the lines of a file, compressed by gzip or not, and an error that
//! names the file and the line. Nothing in a file can panic, and the number of atoms that it claims reserves no memory.

use std::io::{self, BufRead, BufReader};
use std::path::Path;

use flate2::bufread::MultiGzDecoder;
use program::lines;
pub(crate) use program::lines::{Problem, Rejected, number};

use crate::simulation::fold;
use crate::species::{Kind, MOST_KINDS};
use crate::start::Start;
use crate::{data_file, dump, nist, xyz};

/// The lines of a file.
pub(crate) type Lines<'a> = lines::Lines<Box<dyn BufRead + 'a>>;

/// The lines of a text, or of what decompresses to one.
fn unpacked<'a>(mut input: impl BufRead + 'a) -> io::Result<Lines<'a>> {
    let packed = input.fill_buf()?.starts_with(&[0x1f, 0x8b]);
    Ok(Lines::of(if packed { Box::new(BufReader::new(MultiGzDecoder::new(input))) } else { Box::new(input) }))
}

/// The kinds of a file's atoms, in the order in which they come.
#[derive(Debug, Default)]
pub(crate) struct Census {
    kinds: Vec<Kind>,
}

impl Census {
    /// The kind of one more atom, which is called `name` and has a mass if the file gives one.
    ///
    /// # Errors
    /// Too many kinds; atoms of one kind with several masses; a mass that is no number above 0.
    pub(crate) fn add(&mut self, name: &str, mass: Option<&str>) -> Result<u16, String> {
        let mass = match mass {
            None => None,
            Some(word) => {
                Some(number(word).filter(|mass| *mass > 0.0).ok_or_else(|| format!("the mass {word} is no number above 0"))?)
            }
        };
        if let Some(at) = self.kinds.iter().position(|kind| kind.name == name) {
            if self.kinds[at].mass != mass {
                let told = |mass: Option<f64>| mass.map_or("none".to_owned(), |mass| mass.to_string());
                let (first, mass) = (told(self.kinds[at].mass), told(mass));
                return Err(format!("an atom of kind {name} has mass {mass}, one before it {first}"));
            }
            return Ok(at as u16);
        }
        if self.kinds.len() == MOST_KINDS {
            return Err(format!("more than {MOST_KINDS} kinds of atoms"));
        }
        self.kinds.push(Kind { name: name.to_owned(), mass });
        Ok(self.kinds.len() as u16 - 1)
    }

    pub(crate) fn kinds(self) -> Vec<Kind> {
        self.kinds
    }
}

/// The name of the kind where a file gives none, and on a lattice.
pub(crate) const NAMELESS: &str = "Ar";

/// Reads a file by one of the formats.
pub(crate) fn read<T>(file: &Path, parse: impl FnOnce(Lines<'_>) -> Result<T, Problem>) -> Result<T, Rejected> {
    lines::read(file, |opened| parse(unpacked(opened).map_err(lines::unreadable)?))
}

/// A NIST sample configuration.
///
/// # Errors
/// [`Rejected`], for every file that is not one; so for the others.
pub(crate) fn configuration(file: &Path) -> Result<Start, Rejected> {
    read(file, |lines| nist::parse(lines).and_then(whole))
}

/// A LAMMPS data file, or the last frame of a LAMMPS dump or an extended XYZ file, whichever it is.
pub(crate) fn start(file: &Path) -> Result<Start, Rejected> {
    read(file, |mut lines| {
        let first = lines.next_line()?.unwrap_or_default().to_owned();
        if first.starts_with("ITEM:") {
            return whole(dump::parse(lines, &first)?);
        }
        // The first line of a data file is a title, whatever stands there: a number, too. Then the second tells.
        if first.parse::<usize>().is_ok() && second_of_xyz(&mut lines)? {
            return whole(xyz::parse(lines, &first)?);
        }
        whole(data_file::parse(lines, &first)?)
    })
}

/// Whether the next line is the comment of an XYZ file, which has `Lattice=` if it is extended, and not one of a data file's header: blank, a
/// comment behind `#`, or numbers and what they are. The line is still the next one then.
fn second_of_xyz(lines: &mut Lines<'_>) -> Result<bool, Problem> {
    let second = lines.next_line()?.unwrap_or_default();
    let of_header = |word: &str| word.starts_with('#') || number(word).is_some();
    let has_lattice = second.split("Lattice").skip(1).any(|behind| behind.trim_start().starts_with('='));
    let is_comment = has_lattice || second.split_whitespace().next().is_some_and(|word| !of_header(word));
    lines.is_put_back = true;
    Ok(is_comment)
}

/// What holds for every start: a box, atoms, all of them inside. Those outside are moved to their images in the periodic box.
fn whole(mut start: Start) -> Result<Start, Problem> {
    /// Farther out, in edges of the box, a coordinate has fewer than nine digits left for a place in it.
    const FARTHEST: f64 = 1e6;
    if start.positions.is_empty() {
        return Err((None, "there are no atoms".into()));
    }
    if start.positions.len() > u32::MAX as usize / 2 {
        return Err((None, format!("{} atoms are too many", start.positions.len())));
    }
    // LAMMPS counts no farther, and steps of the run are added.
    if start.step > i64::MAX as u64 {
        return Err((None, format!("step {} is too large: at most {}", start.step, i64::MAX)));
    }
    if let Some(d) = (0..3).find(|&d| start.lengths[d].is_nan() || start.lengths[d] <= 0.0) {
        return Err((None, format!("the box has edge {} along axis {d}", start.lengths[d])));
    }
    let lengths = start.lengths;
    let near = |at: &[f64; 3]| (0..3).all(|d| at[d].abs() <= FARTHEST * lengths[d]);
    if let Some(atom) = start.positions.iter().position(|at| !near(at)) {
        let at: [f64; 3] = std::array::from_fn(|d| start.positions[atom][d] + start.origin[d]);
        return Err((None, format!("atom {} at {at:?} is more than {FARTHEST:e} boxes away from the box", atom + 1)));
    }
    start.positions.iter_mut().for_each(|at| *at = fold(*at, lengths));
    sort_kinds(&mut start);
    Ok(start)
}

/// Brings kinds that are numbers into their order. Others stay in the order in which they came.
fn sort_kinds(start: &mut Start) {
    let Some(numbers) = start.kinds.iter().map(|kind| kind.name.parse::<u64>().ok()).collect::<Option<Vec<_>>>() else { return };
    let mut order: Vec<usize> = (0..numbers.len()).collect();
    order.sort_by_key(|&kind| numbers[kind]);
    let mut place = vec![0; order.len()];
    order.iter().enumerate().for_each(|(at, &kind)| place[kind] = at);
    start.kinds = order.iter().map(|&kind| start.kinds[kind].clone()).collect();
    start.kind_of.iter_mut().for_each(|kind| *kind = place[usize::from(*kind)] as u16);
    start.coefficients.iter_mut().for_each(|pair| pair.kinds = pair.kinds.map(|kind| place[kind]));
}

#[cfg(test)]
pub(crate) mod tests {
    use std::io::Write;

    use super::*;
    use crate::species::Coefficients;

    /// What a file with this text would give.
    pub(crate) fn lines(text: &str) -> Lines<'_> {
        unpacked(text.as_bytes()).unwrap()
    }

    #[test]
    fn packed_files_are_unpacked() {
        let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
        packer.write_all(b"one\ntwo 2\n").unwrap();
        let packed = packer.finish().unwrap();
        let mut lines = unpacked(&packed[..]).unwrap();
        assert_eq!(lines.next_line().unwrap(), Some("one"));
        assert_eq!(lines.next_line().unwrap(), Some("two 2"));
        assert_eq!(lines.next_line().unwrap(), None);
        // Cut short, it is an error and not the end.
        let mut lines = unpacked(&packed[..packed.len() - 6]).unwrap();
        assert!((0..4).any(|_| lines.next_line().is_err()));
    }

    /// What the program reads of a file with these bytes.
    fn start_of(name: &str, bytes: &[u8]) -> Result<Start, Rejected> {
        let file = std::env::temp_dir().join(format!("lennard_jones-{}-{name}", std::process::id()));
        std::fs::write(&file, bytes).unwrap();
        let read = start(&file);
        std::fs::remove_file(&file).unwrap();
        read
    }

    #[test]
    fn a_mark_at_the_start_and_latin_1_are_read() {
        let data =
            b"M\xfcller, 300 K\n\n1 atoms # \xb5\n1 atom types\n0 4 xlo xhi\n0 4 ylo yhi\n0 4 zlo zhi\n\nAtoms\n\n1 1 1 2 3\n";
        let dump = b"ITEM: TIMESTEP\n0\nITEM: NUMBER OF ATOMS\n1\nITEM: BOX BOUNDS pp pp pp\n0 4\n0 4\n0 4\nITEM: ATOMS id x y z\n1 1 2 3\n";
        let xyz = b"1\nname=\"M\xfcller\" Lattice=\"4 0 0 0 4 0 0 0 4\" Properties=species:S:1:pos:R:3\nAr 1 2 3\n";
        for (name, text) in [("latin.data", &data[..]), ("latin.dump", dump), ("latin.xyz", xyz)] {
            for mark in ["", "\u{feff}"] {
                let read = start_of(name, &[mark.as_bytes(), text].concat()).unwrap();
                assert_eq!(read.positions, [[1.0, 2.0, 3.0]], "{name}");
            }
        }
    }

    #[test]
    fn a_title_may_be_a_number_and_so_may_a_comment() {
        let header = "1 atoms\n1 atom types\n0 4 xlo xhi\n0 4 ylo yhi\n0 4 zlo zhi\n\nAtoms\n\n1 1 1 2 3\n";
        for title in ["", "300", "1", "300 K", "1.5", "ITEM", "# 1", "Atoms"] {
            for second in ["\n", "# of 300\n", "# Lattice constant 4.0, a = 1\n", ""] {
                let read = start_of("title.data", format!("{title}\n{second}{header}").as_bytes()).unwrap();
                assert_eq!(read.positions, [[1.0, 2.0, 3.0]], "{title} {second}");
            }
        }
        let lattice = "Lattice=\"4 0 0 0 4 0 0 0 4\" Properties=pos:R:3";
        for comment in ["", "300 ", "# ", "# Lattice ", "frame 3 "] {
            let read = start_of("comment.xyz", format!("1\n{comment}{lattice}\n1 2 3\n").as_bytes()).unwrap();
            assert_eq!(read.positions, [[1.0, 2.0, 3.0]], "{comment}");
        }
        for (comment, problem) in
            [("water", "line 2: `Lattice=` is missing"), ("", "`Lattice=` in its"), ("5", "`Lattice=` in its")]
        {
            let refused = start_of("plain.xyz", format!("1\n{comment}\nAr 1 2 3\n").as_bytes()).unwrap_err().to_string();
            assert!(refused.contains(problem), "{refused}");
        }
        assert!(start_of("short.xyz", b"1").unwrap_err().to_string().contains("neither a LAMMPS dump"));
    }

    #[test]
    fn atoms_outside_are_wrapped() {
        let start = |x: f64| Start { origin: [-1.0; 3], lengths: [2.0; 3], positions: vec![[x, 1.0, 0.0]], ..Start::default() };
        for (x, image) in [(0.1, 0.1), (2.0, 0.0), (2.25, 0.25), (-0.5, 1.5), (-200.5, 1.5), (1e6 + 0.5, 0.5), (-1e-17, 0.0)] {
            assert_eq!(whole(start(x)).unwrap().positions, [[image, 1.0, 0.0]], "{x}");
        }
        for far in [3e6, -1e300, f64::INFINITY, f64::NAN] {
            assert!(whole(start(far)).unwrap_err().1.contains("atom 1 at ["), "{far}");
        }
        assert!(whole(Start { step: u64::MAX, ..start(0.0) }).unwrap_err().1.contains("at most 9223372036854775807"));
        assert!(whole(Start { positions: vec![], ..start(0.0) }).unwrap_err().1.contains("no atoms"));
        assert!(whole(Start { lengths: [2.0, 0.0, 2.0], ..start(0.0) }).unwrap_err().1.contains("edge 0 along axis 1"));
    }

    #[test]
    fn kinds_are_told_apart_and_sorted() {
        let mut census = Census::default();
        for (name, kind) in [("10", 0), ("2", 1), ("10", 0), ("3", 2)] {
            assert_eq!(census.add(name, (name == "2").then_some("4.5")), Ok(kind));
        }
        assert!(census.add("2", Some("5")).unwrap_err().contains("kind 2 has mass 5, one before it 4.5"));
        assert!(census.add("10", Some("1")).unwrap_err().contains("one before it none"));
        for mass in ["0", "-1", "heavy", "nan"] {
            assert!(census.add("9", Some(mass)).unwrap_err().contains(mass));
        }
        (4..33).for_each(|name| assert!(census.add(&format!("n{name}"), None).is_ok()));
        assert!(census.add("more", None).unwrap_err().contains("more than 32 kinds"));
        let kinds: Vec<Kind> = census.kinds().into_iter().take(3).collect();
        let pair = Coefficients { kinds: [0, 2], epsilon: 1.0, sigma: 1.0, cutoff: None };
        let mut start = Start { kinds, kind_of: vec![0, 1, 0, 2], coefficients: vec![pair], ..Start::default() };
        sort_kinds(&mut start);
        assert_eq!(start.kind_of, [2, 0, 2, 1]);
        assert!(start.kinds.iter().map(|kind| &kind.name[..]).eq(["2", "3", "10"]));
        assert_eq!((start.coefficients[0].kinds, start.kinds[0].mass), ([2, 1], Some(4.5)));
    }
}
