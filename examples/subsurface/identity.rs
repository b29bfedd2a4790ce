//! What a checkpoint is one of: what a run that goes on has to have in common with the one that wrote it.
//!
//! Boundaries, wells, times and the initial heads may change. Cells, ground, weight and observation points may not.

use serde::{Deserialize, Serialize};

use crate::cases::Case;
use crate::problem::FacePermeability;

/// Grid and ground as checksums, the rest as it is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Identity {
    /// Of the case or the problem.
    name: String,
    cells: [usize; 3],
    grid: String,
    ground: String,
    gravity: bool,
    mean_permeability: bool,
    observations: Vec<String>,
}

impl Identity {
    pub(crate) fn of(case: &dyn Case) -> Identity {
        let grid = case.grid();
        let [n, m, l] = grid.extents();
        let cells = (0..n).flat_map(|i| (0..m).flat_map(move |j| (0..l).map(move |k| [i, j, k])));
        let of_cell = |cell| case.medium(cell).numbers().into_iter().chain([0, 1, 2].map(|axis| case.conductivity(axis, cell)));
        Identity {
            name: case.name(),
            cells: grid.extents(),
            grid: checksum(grid.axes.iter().flat_map(|axis| axis.faces.iter().copied())),
            ground: checksum(cells.flat_map(of_cell)),
            gravity: case.weight(),
            mean_permeability: case.face_permeability() == FacePermeability::Mean,
            observations: case.observed(),
        }
    }

    /// What differs from another, in words.
    pub(crate) fn difference(&self, other: &Identity) -> Option<String> {
        if (&self.name, self.cells) != (&other.name, other.cells) {
            let [(name, cells), (of, with)] = [other, self].map(|side| (&side.name, side.cells));
            return Some(format!("a checkpoint of {name} with {cells:?} cells, not of {of} with {with:?}"));
        }
        let parts = [
            ("faces of the grid", self.grid == other.grid),
            ("materials", self.ground == other.ground),
            ("gravity", self.gravity == other.gravity),
            ("face_permeability", self.mean_permeability == other.mean_permeability),
            ("observations", self.observations == other.observations),
        ];
        let differ: Vec<&str> = parts.into_iter().filter(|(_, same)| !same).map(|(part, _)| part).collect();
        (!differ.is_empty()).then(|| format!("a checkpoint of another {}: it has other {}", self.name, differ.join(", ")))
    }
}

/// FNV-1a of the bits of numbers, 64 bits of it.
///
/// # Source
/// G. Fowler, L. C. Noll, K.-P. Vo, D. Eastlake, *The FNV non-cryptographic hash algorithm*.
fn checksum(numbers: impl Iterator<Item = f64>) -> String {
    let bytes = numbers.flat_map(|number| number.to_bits().to_le_bytes());
    let sum = bytes.fold(0xcbf2_9ce4_8422_2325_u64, |sum, byte| (sum ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
    format!("{sum:016x}")
}
