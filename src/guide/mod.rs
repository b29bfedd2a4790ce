//! A tutorial, recipes, environment variables, a glossary, and a guide for users of Global Arrays.
//!
//! | page | contents |
//! |---|---|
//! | [`tutorial`] | an introduction in nine short pages |
//! | [`cookbook`] | "how do I …?": programs to copy from |
//! | [`files`] | which format for what; checkpoints, time steps |
//! | [`virtual_cluster`] | your program on thousands of ranks of a modelled machine |
//! | [`environment`] | the `GA_*` variables, and the limits of the library |
//! | [`glossary`] | our terms next to those of GA, ARMCI, MPI and OpenSHMEM |
//! | [`coming_from_ga`] | for users of Global Arrays: the equivalent of each call |

pub mod coming_from_ga;
pub mod cookbook;
pub mod environment;
pub mod files;
pub mod glossary;
#[cfg(test)]
mod pictures;
pub mod tutorial;
pub mod virtual_cluster;
