//! What a file says of itself.

use std::io::{self, Read, Write};

use super::{
    placed::Placed,
    variable::{Attributes, Variable},
};
use crate::portable::Portable;

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

impl Portable for Contents {
    fn write(&self, to: &mut dyn Write) -> io::Result<()> {
        self.arrays.len().write(to)?;
        for (variable, placed) in &self.arrays {
            variable.write(to)?;
            placed.write(to)?;
        }
        self.attributes.write(to)?;
        self.times.write(to)
    }

    fn read(from: &mut dyn Read) -> io::Result<Self> {
        let count = usize::read(from)?;
        let arrays = (0..count).map(|_| Portable::read(from)).collect::<io::Result<_>>()?;
        Ok(Contents { arrays, attributes: Vec::read(from)?, times: Option::read(from)? })
    }
}
