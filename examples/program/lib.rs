//! What the programs of `examples/` share.
//!
//! | module | offers |
//! |---|---|
//! | `checkpoints` | arrays and a text from which a run goes on; only with the feature of that name |
//! | [`command_line`] | flags of every program, a bar on the terminal, one line for an error or an interruption |
//! | [`file_names`] | what can be told of a user's files before a run |
//! | [`frames`] | the same of a folder for frames |
//! | [`lines`] | the numbered lines of a user's text |
//! | `plot` | pictures of curves and points; only with the feature of that name |
//! | [`records`] | files that grow by whole records |
//! | [`vectorized`] | loops for the vector instructions of the processor at hand |
//! | [`whole_file`] | files that are there whole or not at all |

#[cfg(feature = "checkpoints")]
pub mod checkpoints;
pub mod command_line;
pub mod file_names;
pub mod frames;
pub mod lines;
#[cfg(feature = "plot")]
pub mod plot;
pub mod records;
// Programs have no other way to what the library does for its own loops.
#[path = "../../src/memory/vectorized.rs"]
pub mod vectorized;
pub mod whole_file;
