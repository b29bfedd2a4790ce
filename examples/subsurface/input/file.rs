//! The tables and keys of a problem file, as they stand in it. The README explains each.

use std::collections::BTreeMap;

use serde::Deserialize;
use toml::Spanned;

use super::quantity::{OneOrThree, Quantity};
use super::region::Extent;
use super::source::Number;
use crate::problem::FacePermeability;

/// The whole file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table")]
pub(crate) struct File {
    pub(crate) title: Option<String>,
    #[serde(default = "yes")]
    pub(crate) gravity: bool,
    #[serde(default)]
    pub(crate) face_permeability: FacePermeability,
    #[serde(default)]
    pub(crate) constants: BTreeMap<Spanned<String>, Number>,
    pub(crate) grid: GridTable,
    pub(crate) materials: BTreeMap<String, Spanned<MaterialTable>>,
    pub(crate) ground: GroundTable,
    pub(crate) initial: Spanned<InitialTable>,
    #[serde(default)]
    pub(crate) boundaries: Vec<Spanned<BoundaryTable>>,
    #[serde(default)]
    pub(crate) wells: Vec<Spanned<WellTable>>,
    #[serde(default)]
    pub(crate) observations: Vec<Spanned<ObservationTable>>,
    pub(crate) time: TimeTable,
}

fn yes() -> bool {
    true
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table")]
pub(crate) struct GridTable {
    pub(crate) x: Option<Spanned<AxisTable>>,
    pub(crate) y: Option<Spanned<AxisTable>>,
    pub(crate) z: Option<Spanned<AxisTable>>,
}

/// Cells along an axis: `cells` and `length`, or `cells`, `half_width` and `core`, or `faces`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table")]
pub(crate) struct AxisTable {
    pub(crate) cells: Option<Spanned<usize>>,
    pub(crate) length: Option<Number>,
    pub(crate) start: Option<Number>,
    pub(crate) ratio: Option<Number>,
    pub(crate) half_width: Option<Number>,
    pub(crate) core: Option<Number>,
    pub(crate) faces: Option<Vec<f64>>,
}

/// A kind of ground, by one of its last three keys.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table")]
pub(crate) struct MaterialTable {
    pub(crate) conductivity: Spanned<OneOrThree>,
    pub(crate) confined: Option<ConfinedTable>,
    pub(crate) van_genuchten: Option<VanGenuchtenTable>,
    pub(crate) gardner: Option<GardnerTable>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table")]
pub(crate) struct ConfinedTable {
    pub(crate) specific_storage: Number,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table")]
pub(crate) struct VanGenuchtenTable {
    pub(crate) alpha: Number,
    pub(crate) n: Number,
    pub(crate) residual: Number,
    pub(crate) saturated: Number,
    pub(crate) specific_storage: Option<Number>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table")]
pub(crate) struct GardnerTable {
    pub(crate) alpha: Number,
    pub(crate) residual: Number,
    pub(crate) saturated: Number,
    pub(crate) specific_storage: Option<Number>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table")]
pub(crate) struct GroundTable {
    pub(crate) material: Spanned<String>,
    #[serde(default)]
    pub(crate) regions: Vec<Spanned<GroundRegion>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table")]
pub(crate) struct GroundRegion {
    pub(crate) material: Spanned<String>,
    pub(crate) x: Option<Spanned<Extent>>,
    pub(crate) y: Option<Spanned<Extent>>,
    pub(crate) z: Option<Spanned<Extent>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table")]
pub(crate) struct InitialTable {
    pub(crate) pressure_head: Option<Spanned<Quantity>>,
    pub(crate) head: Option<Spanned<Quantity>>,
    #[serde(default)]
    pub(crate) regions: Vec<Spanned<InitialRegion>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table")]
pub(crate) struct InitialRegion {
    pub(crate) x: Option<Spanned<Extent>>,
    pub(crate) y: Option<Spanned<Extent>>,
    pub(crate) z: Option<Spanned<Extent>>,
    pub(crate) pressure_head: Option<Spanned<Quantity>>,
    pub(crate) head: Option<Spanned<Quantity>>,
}

/// A side of the grid or part of it, with one of the last five keys.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table")]
pub(crate) struct BoundaryTable {
    pub(crate) side: Spanned<String>,
    pub(crate) x: Option<Spanned<Extent>>,
    pub(crate) y: Option<Spanned<Extent>>,
    pub(crate) z: Option<Spanned<Extent>>,
    pub(crate) closed: Option<bool>,
    pub(crate) pressure_head: Option<Spanned<Quantity>>,
    pub(crate) head: Option<Spanned<Quantity>>,
    pub(crate) inflow: Option<Spanned<Quantity>>,
    pub(crate) leaky: Option<LeakyTable>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table")]
pub(crate) struct LeakyTable {
    pub(crate) head: Spanned<Quantity>,
    pub(crate) conductance: Number,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table")]
pub(crate) struct WellTable {
    pub(crate) x: Option<Spanned<Extent>>,
    pub(crate) y: Option<Spanned<Extent>>,
    pub(crate) z: Option<Spanned<Extent>>,
    pub(crate) rate: Spanned<Quantity>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table")]
pub(crate) struct ObservationTable {
    pub(crate) name: Spanned<String>,
    pub(crate) x: Option<Number>,
    pub(crate) y: Option<Number>,
    pub(crate) z: Option<Number>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table")]
pub(crate) struct TimeTable {
    pub(crate) end: Number,
    pub(crate) first_step: Option<Number>,
    pub(crate) shortest_step: Option<Number>,
    pub(crate) longest_step: Option<Number>,
    pub(crate) accuracy: Option<Number>,
    #[serde(default)]
    pub(crate) outputs: Vec<Number>,
}
