//! What a file says of itself.

use super::{
    placed::Placed,
    variable::{Attributes, Variable},
};
use crate::portable::portable;

/// What a file holds: its arrays, and where they are.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Contents {
    pub(super) arrays: Vec<(Variable, Placed)>,
    pub(super) attributes: Attributes,
    /// Of a file with time steps. They are the first axis, `time`, of all arrays that change with time.
    pub(super) times: Option<Vec<f64>>,
}

impl Contents {
    /// Of one array.
    pub(super) fn of(variable: Variable, placed: Placed) -> Contents {
        Contents { arrays: vec![(variable, placed)], ..Contents::default() }
    }
}

portable!(Contents { arrays, attributes, times });
