//! Extended XYZ: for each frame a line with the number of atoms, one of `Key=value` pairs, and a line for each atom.
//!
//! | key | what is read |
//! |---|---|
//! | `Lattice` | nine numbers: a cuboid along the axes |
//! | `Origin`, `pbc` | a corner of the box, by default 0; all true, if it is there |
//! | `Step`, `Time`, `Heat` | when the frame was written; what a thermostat has added to the energy until then |
//! | `Pairs` | potentials as in `--pair` |
//! | `Properties` | `pos:R:3`; velocities as `velo`, `vel` or `velocities`, or with masses as `momenta`, which ASE writes; kinds by `type`, else `species`, else `Z`; `mass` or `masses`; `displacement:R:3`, how far an atom has come |
//!
//! Other properties are skipped. What [`frame`] writes is read to the last bit where the box begins at 0.
//!
//! # Source
//! libAtoms, *Extended XYZ specification*, github.com/libAtoms/extxyz; the Atomic Simulation Environment, `ase.io.extxyz`.

use std::fmt::Write;

use crate::comment::Comment;
use crate::read::{Census, Lines, NAMELESS, Problem, number};
use crate::species::Coefficients;
use crate::start::Start;

/// The last frame of a file, after its first line. Blank lines may stand between frames; all else is a frame or an error.
pub(crate) fn parse(mut lines: Lines<'_>, first: &str) -> Result<Start, Problem> {
    let mut header = first.to_owned();
    loop {
        let start = one(&mut lines, &header)?;
        match lines.next_filled()? {
            Some(line) => header = line.to_owned(),
            None => return Ok(start),
        }
    }
}

fn one(lines: &mut Lines<'_>, header: &str) -> Result<Start, Problem> {
    let count: usize = header.parse().map_err(|_| lines.problem("the number of atoms of the next frame expected"))?;
    let comment = Comment::parse(lines.expect("the line with Lattice and Properties")?);
    let value = |key: &str| comment.value(key).ok_or_else(|| lines.problem(format!("`{key}=` is missing")));
    let vector = |text: &str| text.split_whitespace().map(number).collect::<Option<Vec<f64>>>();
    let lattice = vector(value("Lattice")?);
    let Some([x, a, b, c, y, d, e, f, z]) = lattice.as_deref().and_then(|l| <[f64; 9]>::try_from(l).ok()) else {
        return Err(lines.problem("Lattice has not nine finite numbers"));
    };
    if [a, b, c, d, e, f].iter().any(|&off| off != 0.0) {
        return Err(lines.problem("the box is triclinic or turned: only cuboids along the axes are simulated"));
    }
    let periodic = |word: &str| matches!(word, "T" | "True" | "true" | "TRUE" | "1");
    if comment.value("pbc").is_some_and(|pbc| !pbc.split_whitespace().all(periodic)) {
        return Err(lines.problem("the box must be periodic along all axes: `pbc=\"T T T\"`"));
    }
    let origin = match comment.value("Origin") {
        None => [0.0; 3],
        Some(text) => vector(text)
            .and_then(|origin| origin.try_into().ok())
            .ok_or_else(|| lines.problem("Origin has not three finite numbers"))?,
    };
    let columns = columns(value("Properties")?).ok_or_else(|| lines.problem("Properties cannot be read"))?;
    let at = columns.iter().find(|column| column.name == "pos" && column.count == 3);
    let at = at.ok_or_else(|| lines.problem("Properties have no pos:R:3"))?.first;
    let find = |names: &[&str], count: usize| {
        names.iter().find_map(|name| columns.iter().find(|c| c.name == *name && c.count == count)).map(|column| column.first)
    };
    let (velocity, momentum) = (find(&["velo", "vel", "velocities"], 3), find(&["momenta"], 3));
    let way = find(&["displacement"], 3);
    if velocity.is_none() && momentum.is_some() && find(&["mass", "masses"], 1).is_none() {
        // The masses would be those that ASE has for the elements.
        let hint = "in ASE, `atoms.set_masses(atoms.get_masses())` writes them";
        return Err(lines.problem(format!("`momenta` without `masses` tell no velocities; {hint}")));
    }
    let (name, mass) = (find(&["type", "species", "Z"], 1), find(&["mass", "masses"], 1));
    let (mut positions, mut velocities, mut ways) = (Vec::new(), Vec::new(), Vec::new());
    let (mut kind_of, mut census) = (Vec::new(), Census::default());
    for _ in 0..count {
        let words: Vec<&str> = lines.expect("an atom")?.split_whitespace().collect();
        let vector = |first: usize| -> Option<[f64; 3]> {
            let words = words.get(first..first + 3)?;
            Some([number(words[0])?, number(words[1])?, number(words[2])?])
        };
        let word = |at: Option<usize>| at.and_then(|at| words.get(at).copied());
        let kind = census.add(word(name).unwrap_or(NAMELESS), word(mass));
        let (position, motion) = (vector(at), velocity.or(momentum).map(vector));
        let (Some(position), Some(motion)) = (position, motion.map_or(Some(None), |v| v.map(Some))) else {
            return Err(lines.problem("position and velocity of an atom expected as finite numbers"));
        };
        if let Some(way) = way {
            ways.push(vector(way).ok_or_else(|| lines.problem("the displacement of an atom expected as finite numbers"))?);
        }
        kind_of.push(kind.map_err(|problem| lines.problem(problem))?);
        positions.push(std::array::from_fn(|d| position[d] - origin[d]));
        velocities.extend(motion);
    }
    let kinds = census.kinds();
    if velocity.is_none() {
        let masses = |kind: u16| kinds[usize::from(kind)].mass.unwrap_or(1.0);
        velocities.iter_mut().zip(&kind_of).for_each(|(v, kind)| *v = v.map(|momentum| momentum / masses(*kind)));
    }
    let told = |key: &str| match comment.value(key) {
        None => Ok(None),
        Some(text) => number(text).map(Some).ok_or_else(|| lines.problem(format!("{key} is no finite number"))),
    };
    let step = comment.value("Step").unwrap_or("0");
    let step = step
        .parse()
        .ok()
        .or_else(|| whole_number(step))
        .ok_or_else(|| lines.problem(format!("Step {step}: a whole number, 0 or more, is expected")))?;
    let (time, heat) = (told("Time")?, told("Heat")?.unwrap_or(0.0));
    let index = |name: &String| kinds.iter().position(|kind| kind.name == *name);
    let mut coefficients = Vec::new();
    for pair in comment.value("Pairs").unwrap_or_default().split_whitespace() {
        let Coefficients { kinds: [a, b], epsilon, sigma, cutoff } =
            pair.parse::<Coefficients>().map_err(|problem| lines.problem(format!("Pairs: {pair}: {problem}")))?;
        // A kind of which no atoms are left is of no use.
        if let (Some(a), Some(b)) = (index(&a), index(&b)) {
            coefficients.push(Coefficients { kinds: [a, b], epsilon, sigma, cutoff });
        }
    }
    Ok(Start { origin, lengths: [x, y, z], positions, velocities, ways, kind_of, kinds, coefficients, step, time, heat })
}

/// A whole number that another program has written as one of floating point. Beyond 2⁵³ it would be one of several.
fn whole_number(text: &str) -> Option<u64> {
    number(text).filter(|x| x.fract() == 0.0 && (0.0..=(1_u64 << 53) as f64).contains(x)).map(|x| x as u64)
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
///
/// Kinds that are called by numbers are written as types; their species is X, which other programs take for an atom of no element.
pub(crate) fn frame(start: &Start) -> String {
    let Start { lengths: [x, y, z], origin: [ox, oy, oz], step, heat, .. } = start;
    let time = start.time.map_or(String::new(), |time| format!(" Time={time}"));
    let heat = if *heat == 0.0 { String::new() } else { format!(" Heat={heat}") };
    let numbered = start.kinds.iter().any(|kind| kind.name.parse::<u64>().is_ok());
    let weighed = start.kinds.iter().any(|kind| kind.mass.is_some());
    let properties = if numbered { "species:S:1:type:I:1" } else { "species:S:1" };
    let masses = if weighed { ":masses:R:1" } else { "" };
    let ways = if start.ways.is_empty() { "" } else { ":displacement:R:3" };
    let name = |kind: usize| &start.kinds[kind].name;
    let pairs: Vec<String> = start
        .coefficients
        .iter()
        .map(|pair| {
            let cutoff = pair.cutoff.map_or(String::new(), |cutoff| format!(",{cutoff}"));
            format!("{},{},{},{}{cutoff}", name(pair.kinds[0]), name(pair.kinds[1]), pair.epsilon, pair.sigma)
        })
        .collect();
    let pairs = if pairs.is_empty() { String::new() } else { format!(" Pairs={}", quoted(&pairs.join(" "))) };
    let mut text = String::with_capacity(160 * (start.positions.len() + 2));
    // Rust writes the fewest digits that read back as the same number. A String takes everything.
    let _ = writeln!(text, "{}", start.positions.len());
    let _ = writeln!(
        text,
        "Lattice=\"{x} 0 0 0 {y} 0 0 0 {z}\" Origin=\"{ox} {oy} {oz}\" pbc=\"T T T\" \
         Properties={properties}:pos:R:3:velo:R:3{masses}{ways} Step={step}{time}{heat}{pairs}"
    );
    let atoms = start.positions.iter().zip(&start.velocities).zip(&start.kind_of);
    for (atom, ((at, v), kind)) in atoms.enumerate() {
        let at: [f64; 3] = std::array::from_fn(|d| at[d] + start.origin[d]);
        let kind = &start.kinds[usize::from(*kind)];
        let _ = if numbered { write!(text, "X {}", kind.name) } else { write!(text, "{}", kind.name) };
        let _ = write!(text, " {:?} {:?} {:?} {:?} {:?} {:?}", at[0], at[1], at[2], v[0], v[1], v[2]);
        if weighed {
            let _ = write!(text, " {:?}", kind.mass.unwrap_or(1.0));
        }
        if let Some(way) = start.ways.get(atom) {
            let _ = write!(text, " {:?} {:?} {:?}", way[0], way[1], way[2]);
        }
        text.push('\n');
    }
    text
}

/// As a value in quotes: names of kinds may have some of their own.
fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', r"\\").replace('"', "\\\""))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::read::tests::lines;
    use crate::species::Kind;

    #[test]
    fn what_is_written_is_read() {
        let (positions, velocities) = (vec![[0.1, 0.2, 1.0 / 3.0], [1.5, 0.0, 2.0]], vec![[-1e-17, 2.0, 3.0], [0.3, 0.7, 1e9]]);
        let kind = |name: &str, mass| Kind { name: name.into(), mass };
        let pair = Coefficients { kinds: [0, 1], epsilon: 1.5, sigma: 0.8, cutoff: Some(2.0) };
        let ways = vec![[1e3, -0.1, 1.0 / 3.0], [0.0, 2.0, 1.0]];
        for (kinds, kind_of, coefficients) in [
            (vec![kind("Ar", None)], vec![0, 0], vec![]),
            (vec![kind("Kr", Some(2.5)), kind("Ar", Some(1.0))], vec![0, 1], vec![pair.clone()]),
            (vec![kind("2", Some(2.5)), kind("1", Some(1.0))], vec![0, 1], vec![pair.clone()]),
            (vec![kind("a\\\"", None), kind("=b'", None)], vec![0, 1], vec![pair]),
        ] {
            let (positions, velocities, lengths) = (positions.clone(), velocities.clone(), [2.0, 3.0, 4.0]);
            let ways = if kinds.len() == 1 { vec![] } else { ways.clone() };
            let start = Start {
                positions,
                velocities,
                ways,
                lengths,
                kinds,
                kind_of,
                coefficients,
                step: u64::MAX,
                time: Some(0.01),
                heat: -3.5,
                ..Start::default()
            };
            let text = frame(&Start { step: 1, time: Some(0.005), ..start.clone() }) + &frame(&start);
            let (first, rest) = text.split_once('\n').unwrap();
            assert_eq!(parse(lines(rest), first).unwrap(), start);
        }
    }

    #[test]
    fn the_last_frame_counts() {
        let frame = |x: f64| format!("Lattice=\"2 0 0 0 2 0 0 0 2\" Properties=pos:R:3\n{x} 0 0\n");
        for between in ["", "\n", " \n\t\n\n"] {
            let of = |second: &str| parse(lines(&format!("{}{between}{second}", frame(0.5))), "1");
            assert_eq!(of(&format!("1\n{}{between}", frame(1.5))).unwrap().positions, [[1.5, 0.0, 0.0]], "{between:?}");
            assert!(of("end\n").unwrap_err().1.contains("number of atoms of the next frame"));
        }
    }

    #[test]
    fn values_are_quoted_in_many_ways() {
        for line in [
            r#"comment="Lattice=1 pbc=F" Lattice="2 0 0 0 3 0 0 0 4" Properties=pos:R:3 pbc="T T T" Origin="1 0 0""#,
            r#"comment='say "pbc=F F F"' Lattice='2 0 0 0 3 0 0 0 4' Properties="pos:R:3" pbc='T T T' Origin='1 0 0'"#,
            r#"info="a \" pbc=F \" b" Lattice={2 0 0 0 3 0 0 0 4} Properties=pos:R:3 pbc={True true TRUE} Origin={1 0 0}"#,
            r#"Lattice = [[2, 0, 0], [0, 3, 0], [0, 0, 4]] Properties = pos:R:3 pbc = [T, T, T] Origin = [1, 0, 0]"#,
        ] {
            let start = parse(lines(&format!("{line}\n1.5 1 1\n")), "1").unwrap();
            assert_eq!((start.lengths, start.positions), ([2.0, 3.0, 4.0], vec![[0.5, 1.0, 1.0]]), "{line}");
        }
        for open in ["pbc=[T, T, F]", "note= pbc=\"F F F\"", "range=[0,1) pbc=\"F F F\" a=[1]", "pbc=\"T T T"] {
            let text = format!("Lattice=\"2 0 0 0 3 0 0 0 4\" Properties=pos:R:3 {open}\n0 0 0\n");
            assert!(parse(lines(&text), "1").unwrap_err().1.contains("periodic"), "{open}");
        }
        assert!(parse(lines("Lattice=\"2 0 0\n0 0 0\n"), "1").unwrap_err().1.contains("nine"));
    }

    #[test]
    fn steps_may_be_written_as_floating_point() {
        let step = |text: &str| {
            let comment = format!("Lattice=\"2 0 0 0 2 0 0 0 2\" Properties=pos:R:3 Step={text} names=[O'Brien,x] range=[0,1)");
            parse(lines(&format!("{comment}\n0 0 0\n")), "1").map(|start| start.step).map_err(|problem| problem.1)
        };
        assert_eq!([step("100.0"), step("1e2"), step("100")], [const { Ok(100) }; 3]);
        assert_eq!(step("9007199254740992.0"), Ok(1 << 53));
        assert_eq!(step("9007199254740993"), Ok((1 << 53) + 1));
        for wrong in ["1.5", "-1.0", "1e17", "nan"] {
            assert_eq!(step(wrong), Err(format!("Step {wrong}: a whole number, 0 or more, is expected")));
        }
    }

    #[test]
    fn mistakes_are_told() {
        let problem = |rest| parse(lines(rest), "1").unwrap_err().1;
        assert!(parse(lines(""), "one").unwrap_err().1.contains("number of atoms"));
        let two = |properties: &str, atoms: &str| {
            let text = format!("Lattice=\"2 0 0 0 2 0 0 0 2\" Properties={properties}:pos:R:3\n{atoms}");
            parse(lines(&text), "2").map_err(|problem| problem.1)
        };
        assert!(two("mass:R:1", "1 0 0 0\n2.5 1 1 1\n").unwrap_err().contains("mass 2.5, one before it 1"));
        assert!(two("species:S:1:masses:R:1", "Ar 1.0 0 0 0\nKr 2.5 1 1 1\n").is_ok());
        let momenta = "Lattice=\"2 0 0 0 2 0 0 0 2\" Properties=pos:R:3:momenta:R:3\n0 0 0 1 1 1\n";
        assert!(problem(momenta).contains("without `masses`"));
        let late = "Lattice=\"2 0 0 0 2 0 0 0 2\" Properties=pos:R:3 Step=later\n0 0 0\n";
        assert!(problem(late).contains("Step later: a whole number"));
        let open = "Lattice=\"2 0 0 0 2 0 0 0 2\" Properties=pos:R:3 pbc=\"T T F\"\n0 0 0\n";
        assert!(problem(open).contains("periodic"));
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
