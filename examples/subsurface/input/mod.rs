//! Problems that a user poses in a TOML file: grid, materials, heads at the start, boundaries, wells, times, observation points.
//!
//! [`mod@file`] has the tables and keys, [`source`] the messages about them. Everything is read and checked before the ranks
//! start, so a mistake gives one line. Values may be formulas of x, y and z ([`formula`]).
//!
//! Along axis 0 of the grid is z, upwards; along 1 and 2 are x and y.

mod axes;
mod file;
mod formula;
mod ground;
mod heads;
mod observation;
mod posed;
mod quantity;
mod region;
mod sides;
mod source;
#[cfg(test)]
mod tests;
mod times;
mod wells;

pub(crate) use posed::Posed;
