//! The materials of a problem file, and where each is.

use std::collections::BTreeMap;

use toml::Spanned;

use super::file::{GroundTable, MaterialTable};
use super::quantity::OneOrThree;
use super::region::Region;
use super::source::{Number, Source};
use crate::grid::Grid;
use crate::medium::Medium;

/// A kind of ground with its conductivity along z, x and y [m/s].
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Material {
    pub(crate) medium: Medium,
    pub(crate) conductivity: [f64; 3],
}

/// Which material each cell is of.
#[derive(Debug, Clone)]
pub(crate) struct Ground {
    /// By name, in the order of the alphabet.
    materials: Vec<Material>,
    default: usize,
    /// Later ones override earlier ones.
    regions: Vec<(Region, usize)>,
}

impl Ground {
    /// # Errors
    /// A material that is not described by one retention law with sound numbers, or that nobody describes.
    pub(crate) fn new(
        source: &Source,
        grid: &Grid,
        materials: &BTreeMap<String, Spanned<MaterialTable>>,
        table: &GroundTable,
    ) -> Result<Ground, String> {
        let number = |name: &Spanned<String>| {
            let known = || materials.keys().map(String::as_str).collect::<Vec<_>>().join(", ");
            let unknown =
                || source.at(name.span(), format!("material = \"{}\": known materials are {}", name.get_ref(), known()));
            materials.keys().position(|key| key == name.get_ref()).ok_or_else(unknown)
        };
        let mut regions = Vec::new();
        for region in table.regions.iter().map(Spanned::get_ref) {
            regions.push((Region::new(source, grid, [&region.x, &region.y, &region.z])?, number(&region.material)?));
        }
        let default = number(&table.material)?;
        let materials = materials.iter().map(|(name, table)| material(source, name, table)).collect::<Result<_, _>>()?;
        Ok(Ground { materials, default, regions })
    }

    /// The number of the material of a cell, in the order of the alphabet.
    pub(crate) fn number(&self, cell: [usize; 3]) -> usize {
        self.regions.iter().rev().find(|(region, _)| region.contains(cell)).map_or(self.default, |&(_, number)| number)
    }

    pub(crate) fn material(&self, cell: [usize; 3]) -> Material {
        self.materials[self.number(cell)]
    }

    /// True if all ground is always saturated.
    pub(crate) fn is_confined(&self) -> bool {
        self.materials.iter().all(|material| matches!(material.medium, Medium::Confined { .. }))
    }
}

fn material(source: &Source, name: &str, table: &Spanned<MaterialTable>) -> Result<Material, String> {
    let MaterialTable { conductivity, confined, van_genuchten, gardner } = table.get_ref();
    let OneOrThree([x, y, z]) = *conductivity.get_ref();
    if ![x, y, z].iter().all(|k| *k > 0.0 && k.is_finite()) {
        let what = format!("conductivity of {name}: numbers above 0 are needed, one or three for x, y and z");
        return Err(source.at(conductivity.span(), what));
    }
    let storage = |number: &Option<Number>| number.as_ref().map_or(Ok(0.0), |number| storage(source, number));
    let medium = match (confined, van_genuchten, gardner) {
        (Some(law), None, None) => {
            Medium::Confined { specific_storage: source.positive("specific_storage", &law.specific_storage)? }
        }
        (None, Some(law), None) => {
            let n = source.check("n", &law.n, "a number above 1 is needed", |n| n > 1.0 && n.is_finite())?;
            let [residual, saturated] = contents(source, &law.residual, &law.saturated)?;
            let alpha = source.positive("alpha", &law.alpha)?;
            Medium::VanGenuchten {
                alpha,
                m: 1.0 - 1.0 / n,
                residual,
                saturated,
                specific_storage: storage(&law.specific_storage)?,
            }
        }
        (None, None, Some(law)) => {
            let [residual, saturated] = contents(source, &law.residual, &law.saturated)?;
            let alpha = source.positive("alpha", &law.alpha)?;
            Medium::Gardner { alpha, residual, saturated, specific_storage: storage(&law.specific_storage)? }
        }
        _ => {
            let what = format!("material {name}: one of `confined`, `van_genuchten` and `gardner` is needed");
            return Err(source.at(table.span(), what));
        }
    };
    Ok(Material { medium, conductivity: [z, x, y] })
}

fn storage(source: &Source, number: &Number) -> Result<f64, String> {
    source.check("specific_storage", number, "a number of at least 0 is needed", |s| s >= 0.0 && s.is_finite())
}

/// Residual and saturated water content.
fn contents(source: &Source, residual: &Number, saturated: &Number) -> Result<[f64; 2], String> {
    let low = source.check("residual", residual, "a number from 0 to below 1 is needed", |x| (0.0..1.0).contains(&x))?;
    let needed = format!("a number above residual = {low} and at most 1 is needed");
    Ok([low, source.check("saturated", saturated, &needed, |x| x > low && x <= 1.0)?])
}
