//! Pages to read: a tutorial, recipes, environment variables, the words of the field, and where the calls of Global Arrays went.
//!
//! | page | for |
//! |---|---|
//! | [`tutorial`] | a first reading, in eight short pages |
//! | [`cookbook`] | "how do I …?": programs to copy from |
//! | [`environment`] | the `GA_*` variables, and the limits of the library |
//! | [`glossary`] | our words beside those of GA, ARMCI, MPI and OpenSHMEM |
//! | [`coming_from_ga`] | users of Global Arrays: where each call went |

pub mod coming_from_ga;
pub mod cookbook;
pub mod environment;
pub mod glossary;
#[cfg(test)]
mod pictures;
pub mod tutorial;
