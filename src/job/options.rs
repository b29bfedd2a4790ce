//! Options that are words, in programs and in the environment: each word stands here once.

use std::{fmt, str::FromStr};

pub use crate::comm::{Connect, start::settings::Computing};
use crate::error::Error;

/// How ranks that are processes start and meet, for [`Launch::bootstrap`](crate::Launch::bootstrap).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Bootstrap {
    /// `fork`: this process forks them.
    Fork,
    /// `pmi`: they are the processes of a launcher that speaks PMI-1 or PMI-2, such as MPICH's `mpirun` and `srun --mpi=pmi2`.
    Pmi,
    /// `pmix`: they are the processes of a launcher that speaks PMIx, such as Open MPI's `mpirun`. Its library is loaded when the job
    /// starts.
    Pmix,
    /// `mpi`: they are the processes of a launcher, in a binary with the feature `mpi`. Its library alone speaks with the launcher, and is
    /// initialized if the program has not done it. The ranks use it to meet, and at the end of the job.
    Mpi,
    /// `root`: they meet at the place that `GA_ROOT` names, where `ga-run` listens, or rank 0.
    Root,
}

/// Reads and prints an option that is one of some words.
macro_rules! words {
    ($option:ident: $first:ident $first_word:literal; $($next:ident $word:literal),*; $last:ident $last_word:literal) => {
        impl $option {
            pub(super) const ALLOWED: &str = concat!($first_word, $(", ", $word,)* " or ", $last_word);
        }

        impl FromStr for $option {
            type Err = Error;

            fn from_str(word: &str) -> Result<Self, Error> {
                match word {
                    $first_word => Ok($option::$first),
                    $($word => Ok($option::$next),)*
                    $last_word => Ok($option::$last),
                    _ => Err(refusal(word, $option::ALLOWED)),
                }
            }
        }

        impl fmt::Display for $option {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(match self {
                    $option::$first => $first_word,
                    $($option::$next => $word,)*
                    $option::$last => $last_word,
                })
            }
        }
    };
}

words!(Bootstrap: Fork "fork"; Pmi "pmi", Pmix "pmix", Mpi "mpi"; Root "root");
words!(Connect: Overlapped "overlapped"; Serial "serial"; Static "static");

impl Computing {
    pub(super) const ALLOWED: &str = "declared, measured, measured:FACTOR (above 0 and below a million), zero or skip";

    /// A factor that a clock can be multiplied with.
    pub(super) fn is_allowed(&self) -> bool {
        if let Computing::Measured(factor) = *self { factor > 0.0 && factor < 1e6 } else { true }
    }
}

impl FromStr for Computing {
    type Err = Error;

    fn from_str(word: &str) -> Result<Self, Error> {
        let computing = match (word, word.strip_prefix("measured:")) {
            ("declared", _) => Some(Computing::Declared),
            ("measured", _) => Some(Computing::Measured(1.0)),
            ("zero", _) => Some(Computing::Zero),
            ("skip", _) => Some(Computing::Skip),
            (_, factor) => factor.and_then(|factor| factor.parse().ok()).map(Computing::Measured),
        };
        computing.filter(Computing::is_allowed).ok_or_else(|| refusal(word, Computing::ALLOWED))
    }
}

impl fmt::Display for Computing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Computing::Declared => f.pad("declared"),
            Computing::Measured(factor) => f.pad(&format!("measured:{factor}")),
            Computing::Zero => f.pad("zero"),
            Computing::Skip => f.pad("skip"),
        }
    }
}

fn refusal(word: &str, allowed: &str) -> Error {
    Error::Launch(format!("{word:?} is not {allowed}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_read_as_they_are_printed() {
        fn round_trip<V: FromStr<Err = Error> + fmt::Display + fmt::Debug + PartialEq>(allowed: &str, words: &[(&str, V)]) {
            for (word, value) in words {
                assert_eq!(&word.parse::<V>().unwrap(), value);
                assert_eq!(&value.to_string().parse::<V>().unwrap(), value);
                assert!(allowed.contains(word.split(':').next().unwrap()), "{word}");
            }
            for wrong in ["", "late", " fork", "Serial", "measured:", "measured:-1", "measured:0", "measured:nan", "measured:1e6"]
            {
                let text = wrong.parse::<V>().unwrap_err().to_string();
                assert!(text.contains(&format!("{wrong:?} is not {allowed}")), "{text}");
            }
        }
        use Bootstrap::{Fork, Mpi, Pmi, Pmix, Root};
        let words = [("fork", Fork), ("pmi", Pmi), ("pmix", Pmix), ("mpi", Mpi), ("root", Root)];
        round_trip("fork, pmi, pmix, mpi or root", &words);
        let words = [("overlapped", Connect::Overlapped), ("serial", Connect::Serial), ("static", Connect::Static)];
        round_trip("overlapped, serial or static", &words);
        let measured = [("measured", 1.0), ("measured:2.5", 2.5), ("measured:0.1", 0.1)];
        let measured = measured.map(|(word, factor)| (word, Computing::Measured(factor)));
        let words = [("declared", Computing::Declared), ("zero", Computing::Zero), ("skip", Computing::Skip)];
        round_trip(Computing::ALLOWED, &[&words[..], &measured].concat());
    }
}
