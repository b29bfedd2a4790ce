//! What a run measures when it is not to measure all.
//!
//! A group's name stands for its rows on one node and, for those that have them, between nodes. The rows that are measured once
//! more inside a node under `mpirun` are as many as all others, and come with `mpi` alone.

use super::goals::{Group, Section};
use super::mpi::Place;
use clap::ValueEnum;
use std::str::FromStr;

/// One word after `--only`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Only {
    /// Everything that MPI has a part in.
    Mpi,
    /// Of that what is inside a node.
    MpiInside,
    /// Of that what is between nodes.
    MpiBetween,
    Group(Group),
}

impl FromStr for Only {
    type Err = String;

    fn from_str(word: &str) -> Result<Self, String> {
        match word {
            "mpi" => Ok(Only::Mpi),
            "mpi_inside" => Ok(Only::MpiInside),
            "mpi_between" => Ok(Only::MpiBetween),
            _ => Group::from_str(word, false).map(Only::Group).map_err(|_| {
                let names: Vec<String> = Group::value_variants().iter().map(Group::to_string).collect();
                format!("there are mpi, mpi_inside, mpi_between, {}", names.join(", "))
            }),
        }
    }
}

impl Only {
    fn takes(self, section: Section) -> bool {
        match (self, section.place) {
            (Only::Mpi, Place::Inside(_) | Place::Between(_)) => true,
            (Only::MpiInside, Place::Inside(_)) | (Only::MpiBetween, Place::Between(_)) => true,
            (Only::Group(group), Place::Here | Place::Between(_)) => section.group == group,
            _ => false,
        }
    }
}

/// Without a choice everything but what `mpi` alone brings.
pub fn wanted(only: &[Only], section: Section) -> bool {
    if only.is_empty() {
        return !matches!(section.place, Place::Inside(_));
    }
    only.iter().any(|only| only.takes(section))
}

#[cfg(test)]
mod tests {
    use super::super::goals::sections;
    use super::*;

    #[test]
    fn words_choose_sections() {
        let chosen = |words: &[&str]| {
            let only: Result<Vec<Only>, String> = words.iter().map(|word| word.parse()).collect();
            let only = only.expect("words that are known");
            let chosen = sections().into_iter().filter(|section| wanted(&only, *section));
            chosen.map(|section| section.to_string()).collect::<Vec<_>>()
        };
        assert_eq!(chosen(&["remote"]), ["between_mpich/remote", "between_openmpi/remote"]);
        assert_eq!(chosen(&["element", "sync"]), ["element", "sync"]);
        assert_eq!(chosen(&["lu"]), ["lu", "between_mpich/lu", "between_openmpi/lu"]);
        assert_eq!(chosen(&["mpi_between"]).len(), 8);
        assert_eq!(chosen(&["mpi"]).len(), chosen(&["mpi_inside"]).len() + 8);
        assert!(chosen(&[]).iter().all(|name| !name.starts_with("inside")));
        assert_eq!(chosen(&[]).len() + chosen(&["mpi_inside"]).len(), sections().len());
        assert!("element2".parse::<Only>().is_err());
    }
}
