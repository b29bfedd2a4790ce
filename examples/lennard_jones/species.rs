//! The kinds of atoms: their names, masses and potentials, from a file, from the command line, or both.
//!
//! What the command line says of a pair of kinds or of a mass goes before what a file says. A pair of two kinds of which nothing is said is
//! *mixed* from the potentials of each kind with itself. One kind of which nothing is said has ε = σ = m = 1. Of several, each must have a
//! potential, and all have masses or none, which then is 1: the program invents no parameters.
//!
//! # Source
//! The rules are those of LAMMPS (`pair_modify mix`); *arithmetic* is that of H. A. Lorentz (1881) and D. Berthelot (1898).

use std::str::FromStr;

use clap::ValueEnum;

use crate::potential::{Ending, Potential};

/// Where nobody says another cut-off.
const CUTOFF: f64 = 2.5;

/// A kernel goes through all kinds for each vector of atoms.
pub(crate) const MOST_KINDS: usize = 32;

/// A kind of atoms.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Kind {
    /// The number of a LAMMPS type, or the name of an element.
    pub(crate) name: String,
    /// If a file says it.
    pub(crate) mass: Option<f64>,
}

/// ε, σ and maybe the cut-off of two kinds.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Coefficients<K = String> {
    pub(crate) kinds: [K; 2],
    pub(crate) epsilon: f64,
    pub(crate) sigma: f64,
    pub(crate) cutoff: Option<f64>,
}

impl<K> Coefficients<K> {
    /// Of three numbers, the last of which may be missing.
    pub(crate) fn new(kinds: [K; 2], numbers: &[f64]) -> Result<Self, String> {
        let (epsilon, sigma, cutoff) = match *numbers {
            [epsilon, sigma] => (epsilon, sigma, None),
            [epsilon, sigma, cutoff] => (epsilon, sigma, Some(cutoff)),
            _ => return Err("epsilon, sigma and maybe a cut-off are expected".into()),
        };
        if epsilon < 0.0 || sigma <= 0.0 || cutoff.is_some_and(|cutoff| cutoff <= 0.0) {
            return Err("epsilon must be at least 0, sigma and the cut-off above 0".into());
        }
        Ok(Coefficients { kinds, epsilon, sigma, cutoff })
    }
}

impl FromStr for Coefficients {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let words: Vec<&str> = text.split(',').collect();
        let [a, b, numbers @ ..] = &words[..] else {
            return Err("KIND,KIND,EPSILON,SIGMA or KIND,KIND,EPSILON,SIGMA,CUTOFF is expected".into());
        };
        let numbers: Option<Vec<f64>> = numbers.iter().map(|word| crate::read::number(word)).collect();
        let numbers = numbers.ok_or("KIND,KIND,EPSILON,SIGMA or KIND,KIND,EPSILON,SIGMA,CUTOFF is expected")?;
        Coefficients::new([a.to_string(), b.to_string()], &numbers)
    }
}

/// The mass of a kind.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Mass {
    kind: String,
    mass: f64,
}

impl FromStr for Mass {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (kind, mass) = text.split_once('=').ok_or("KIND=MASS is expected")?;
        let mass = crate::read::number(mass).filter(|mass| *mass > 0.0).ok_or("the mass is not a number above 0")?;
        Ok(Mass { kind: kind.into(), mass })
    }
}

/// How the potential of two kinds follows from that of each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Mixing {
    /// Geometric means, as LAMMPS by default
    Geometric,
    /// Arithmetic mean of the sizes, geometric mean of the depths: Lorentz and Berthelot
    Arithmetic,
}

impl Mixing {
    fn distance(self, a: f64, b: f64) -> f64 {
        match self {
            // Not one bit off where both are the same.
            _ if a == b => a,
            Mixing::Geometric => (a * b).sqrt(),
            Mixing::Arithmetic => 0.5 * (a + b),
        }
    }
}

/// What the command line says of the kinds.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Choices {
    /// Potential between two kinds of atoms, and maybe its own cut-off; may be repeated. Kinds have the names of the file; Ar if it has none, and
    /// on a lattice
    #[arg(long = "pair", value_name = "KIND,KIND,EPSILON,SIGMA[,CUTOFF]")]
    pub(crate) pairs: Vec<Coefficients>,
    /// Mass of the atoms of a kind; may be repeated
    #[arg(long = "mass", value_name = "KIND=MASS")]
    pub(crate) masses: Vec<Mass>,
    /// How the potential of two kinds is made, where none is given, from that of each with itself
    #[arg(long, value_enum, default_value_t = Mixing::Geometric)]
    pub(crate) mix: Mixing,
}

impl Choices {
    /// The masses of all kinds.
    pub(crate) fn masses(&self, kinds: &[Kind]) -> Result<Vec<f64>, String> {
        for mass in &self.masses {
            index(kinds, &mass.kind, "--mass")?;
        }
        let chosen = |kind: &Kind| self.masses.iter().rfind(|mass| mass.kind == kind.name).map(|mass| mass.mass);
        let masses: Vec<Option<f64>> = kinds.iter().map(|kind| chosen(kind).or(kind.mass)).collect();
        if let Some(at) = masses.iter().position(Option::is_none).filter(|_| masses.iter().any(Option::is_some)) {
            let name = &kinds[at].name;
            return Err(format!("other kinds of atoms have masses, and nothing says that of kind {name}: --mass {name}=MASS"));
        }
        Ok(masses.into_iter().map(|mass| mass.unwrap_or(1.0)).collect())
    }

    /// The potentials between all kinds; `read` are those of the file.
    pub(crate) fn potential(
        &self,
        kinds: &[Kind],
        read: &[Coefficients<usize>],
        ending: Ending,
        asked: Option<f64>,
    ) -> Result<Potential, String> {
        let cutoff = asked.unwrap_or(CUTOFF);
        let mut given: Vec<Coefficients<usize>> = read.to_vec();
        for Coefficients { kinds: [a, b], epsilon, sigma, cutoff } in &self.pairs {
            let kinds = [index(kinds, a, "--pair")?, index(kinds, b, "--pair")?];
            given.push(Coefficients { kinds, epsilon: *epsilon, sigma: *sigma, cutoff: *cutoff });
        }
        if kinds.len() == 1 {
            given.insert(0, Coefficients { kinds: [0, 0], epsilon: 1.0, sigma: 1.0, cutoff: None });
        }
        // The last word counts.
        let find = |a: usize, b: usize| given.iter().rfind(|pair| pair.kinds == [a, b] || pair.kinds == [b, a]);
        if let Some(kind) = (0..kinds.len()).find(|&kind| find(kind, kind).is_none()) {
            let (name, count) = (&kinds[kind].name, kinds.len());
            return Err(format!(
                "there are {count} kinds of atoms, and nothing says what holds between those of kind {name}: --pair \
                 {name},{name},EPSILON,SIGMA"
            ));
        }
        let all = || (0..kinds.len()).flat_map(|a| (a..kinds.len()).map(move |b| (a, b)));
        if asked.is_some() && all().all(|(a, b)| find(a, b).is_some_and(|pair| pair.cutoff.is_some())) {
            return Err("--cutoff means nothing here: all pairs of kinds have cut-offs of their own; --pair changes them".into());
        }
        let of = |a: usize, b: usize| {
            let law = |pair: &Coefficients<usize>| (pair.epsilon, pair.sigma, pair.cutoff.unwrap_or(cutoff));
            if let Some(pair) = find(a, b) {
                return law(pair);
            }
            let one = |kind| find(kind, kind).map_or((1.0, 1.0, cutoff), law);
            let (a, b) = (one(a), one(b));
            ((a.0 * b.0).sqrt(), self.mix.distance(a.1, b.1), self.mix.distance(a.2, b.2))
        };
        // A cut-off that nobody chose for atoms of this size.
        for (a, b) in all().filter(|&(a, b)| find(a, b).is_none_or(|pair| pair.cutoff.is_none())) {
            let (epsilon, sigma, cutoff) = of(a, b);
            if epsilon > 0.0 && cutoff <= sigma {
                let (a, b) = (&kinds[a].name, &kinds[b].name);
                return Err(format!(
                    "the cut-off {cutoff} of kinds {a} and {b} is not beyond their sigma, {sigma}: give --cutoff"
                ));
            }
        }
        Ok(Potential::new(ending, kinds.len(), of))
    }
}

/// The number of the kind with this name.
fn index(kinds: &[Kind], name: &str, flag: &str) -> Result<usize, String> {
    kinds.iter().position(|kind| kind.name == name).ok_or_else(|| {
        let names: Vec<&str> = kinds.iter().map(|kind| &kind.name[..]).collect();
        format!("{flag}: there are no atoms of kind {name}, only of {}", names.join(", "))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn choices(pairs: &[&str], mix: Mixing) -> Choices {
        Choices { pairs: pairs.iter().map(|pair| pair.parse().unwrap()).collect(), masses: Vec::new(), mix }
    }

    fn kinds(names: &[&str]) -> Vec<Kind> {
        names.iter().map(|name| Kind { name: name.to_string(), mass: None }).collect()
    }

    #[test]
    fn pairs_are_given_or_mixed() {
        let kinds = kinds(&["Ar", "Kr"]);
        let potential = |pairs: &[&str], mix| choices(pairs, mix).potential(&kinds, &[], Ending::Truncated, None).unwrap();
        let law = |potential: &Potential, a: usize, b: usize| {
            let law = potential.laws(a)[b];
            (law.epsilon, law.sigma, law.cutoff)
        };
        let own = ["Ar,Ar,1,1", "Kr,Kr,4,2,10"];
        let geometric = potential(&own, Mixing::Geometric);
        assert_eq!((law(&geometric, 0, 1), law(&geometric, 1, 0)), ((2.0, 2_f64.sqrt(), 5.0), (2.0, 2_f64.sqrt(), 5.0)));
        assert_eq!(law(&potential(&own, Mixing::Arithmetic), 0, 1), (2.0, 1.5, 6.25));
        assert_eq!((law(&geometric, 0, 0), law(&geometric, 1, 1)), ((1.0, 1.0, 2.5), (4.0, 2.0, 10.0)));
        // The last word counts, in either order.
        let given = potential(&[own[0], own[1], "Kr,Ar,7,7", "Ar,Kr,1.5,0.8"], Mixing::Geometric);
        assert_eq!((law(&given, 0, 1), law(&given, 1, 0)), ((1.5, 0.8, 2.5), (1.5, 0.8, 2.5)));
        // A file's word counts before the last.
        let read = [Coefficients { kinds: [0, 0], epsilon: 9.0, sigma: 9.0, cutoff: None }];
        let mixed = choices(&own[1..], Mixing::Geometric).potential(&kinds, &read, Ending::Truncated, Some(20.0)).unwrap();
        assert_eq!(law(&mixed, 0, 0), (9.0, 9.0, 20.0));
    }

    #[test]
    fn no_potential_is_made_up() {
        let error = |pairs: &[&str]| {
            choices(pairs, Mixing::Geometric).potential(&kinds(&["1", "2"]), &[], Ending::Truncated, Some(2.5)).unwrap_err()
        };
        assert!(error(&["1,1,1,1", "2,2,1,3.4"]).contains("not beyond their sigma"));
        assert!(error(&["1,1,1,1,2", "2,2,1,1,2", "1,2,1,1,2"]).contains("--cutoff means nothing"));
        assert!(error(&["1,1,1,1"]).contains("--pair 2,2,EPSILON,SIGMA"));
        assert!(error(&["1,1,1,1", "3,3,1,1"]).contains("no atoms of kind 3, only of 1, 2"));
        for wrong in ["1,1,1", "1", "1,1,-1,1", "1,1,1,0", "1,1,1,1,0", "1,1,1,1,1,1", "1,1,x,1", "1,1,nan,1"] {
            assert!(wrong.parse::<Coefficients>().is_err(), "{wrong}");
        }
        for wrong in ["Ar", "Ar=0", "Ar=-1", "Ar=x", "Ar=inf"] {
            assert!(wrong.parse::<Mass>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn masses_are_chosen_read_or_one() {
        let mut kinds = kinds(&["1", "2", "3"]);
        (kinds[0].mass, kinds[1].mass) = (Some(4.0), Some(5.0));
        let mut choices = choices(&[], Mixing::Geometric);
        choices.masses = vec!["1=7".parse().unwrap()];
        assert!(choices.masses(&kinds).unwrap_err().contains("--mass 3=MASS"));
        choices.masses.push("3=2".parse().unwrap());
        assert_eq!(choices.masses(&kinds).unwrap(), [7.0, 5.0, 2.0]);
        choices.masses = vec!["4=7".parse().unwrap()];
        assert!(choices.masses(&kinds).unwrap_err().contains("--mass: there are no atoms of kind 4"));
    }
}
