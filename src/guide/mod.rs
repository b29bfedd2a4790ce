//! Pages to read, without code: what the words mean, and where the calls of Global Arrays went.
//!
//! * [`glossary`]: our words beside those of GA, ARMCI, MPI and OpenSHMEM.
//! * [`coming_from_ga`]: for who has a program that calls GA.

pub mod coming_from_ga;
pub mod glossary;
