//! A problem as posed, ready to be solved.

use std::path::Path;

use global_arrays::prelude::*;

use super::file::File;
use super::ground::Ground;
use super::heads::Initial;
use super::observation::Observation;
use super::quantity::constants;
use super::sides::Side;
use super::source::Source;
use super::wells::Well;
use super::{axes, times};
use crate::cases::{Case, Curve, Verdict};
use crate::cli::Arguments;
use crate::grid::Grid;
use crate::march::{Marched, Schedule};
use crate::medium::Medium;
use crate::problem::{Boundary, FacePermeability, Problem};

/// A problem that a file poses.
#[derive(Debug)]
pub(crate) struct Posed {
    name: String,
    title: String,
    has_weight: bool,
    face_permeability: FacePermeability,
    grid: Grid,
    ground: Ground,
    initial: Initial,
    /// Later ones override earlier ones.
    sides: Vec<Side>,
    wells: Vec<Well>,
    observations: Vec<Observation>,
    schedule: Schedule,
    outputs: Vec<f64>,
}

impl Posed {
    /// # Errors
    /// A file that cannot be read; what is wrong in it.
    pub(crate) fn read(path: &Path, arguments: &Arguments) -> Result<Posed, String> {
        Posed::new(&Source::read(path)?, arguments)
    }

    /// # Errors
    /// One line with the name of the file, the line and the key for whatever is wrong.
    pub(crate) fn new(source: &Source, arguments: &Arguments) -> Result<Posed, String> {
        let file: File = source.parse()?;
        let constants = constants(source, &file.constants)?;
        let grid = axes::grid(source, &file.grid)?;
        let ground = Ground::new(source, &grid, &file.materials, &file.ground)?;
        let initial = Initial::new(source, &grid, &file.initial, &constants, file.gravity)?;
        let side = |table| Side::new(source, &grid, table, &constants, file.gravity);
        let sides: Vec<Side> = file.boundaries.iter().map(side).collect::<Result<_, _>>()?;
        let well = |table| Well::new(source, &grid, &ground, table, &constants);
        let wells: Vec<Well> = file.wells.iter().map(well).collect::<Result<_, _>>()?;
        let mut observations: Vec<Observation> = Vec::new();
        for table in &file.observations {
            observations.push(Observation::new(source, &grid, table, &observations)?);
        }
        if observations.is_empty() && (arguments.output.is_some() || arguments.plot.is_some()) {
            return Err(source.whole("--output and --plot need observations, and there are none"));
        }
        let changes: Vec<f64> = sides.iter().flat_map(Side::changes).chain(wells.iter().flat_map(Well::changes)).collect();
        let (schedule, outputs) = times::schedule(source, &file.time, &changes, arguments)?;
        let name = source.stem();
        let title = file.title.unwrap_or_else(|| name.clone());
        let File { gravity: has_weight, face_permeability, .. } = file;
        Ok(Posed {
            name,
            title,
            has_weight,
            face_permeability,
            grid,
            ground,
            initial,
            sides,
            wells,
            observations,
            schedule,
            outputs,
        })
    }

    /// Pressure head, hydraulic head and water content at each observation point, from the pressure heads there.
    fn recorded<'a>(&'a self, heads: &'a [f64]) -> impl Iterator<Item = f64> + 'a {
        self.observations.iter().zip(heads).flat_map(|(point, &head)| {
            let height = if self.has_weight { point.place[0] } else { 0.0 };
            [head, head + height, self.ground.material(point.cell).medium.at(head).content]
        })
    }
}

impl Problem for Posed {
    fn grid(&self) -> &Grid {
        &self.grid
    }

    fn medium(&self, cell: [usize; 3]) -> Medium {
        self.ground.material(cell).medium
    }

    fn material(&self, cell: [usize; 3]) -> usize {
        self.ground.number(cell)
    }

    fn conductivity(&self, axis: usize, cell: [usize; 3]) -> f64 {
        self.ground.material(cell).conductivity[axis]
    }

    fn boundary(&self, axis: usize, upper: bool, cell: [usize; 3], time: f64) -> Boundary {
        let side = self.sides.iter().rev().find(|side| side.covers(axis, upper, cell));
        side.map_or(Boundary::Closed, |side| side.at(&self.grid, cell, time))
    }

    fn source(&self, cell: [usize; 3], time: f64) -> f64 {
        self.wells.iter().map(|well| well.source(&self.grid, &self.ground, cell, time)).sum()
    }

    fn initial_head(&self, cell: [usize; 3]) -> f64 {
        self.initial.pressure(&self.grid, cell)
    }

    fn weight(&self) -> bool {
        self.has_weight
    }

    fn face_permeability(&self) -> FacePermeability {
        self.face_permeability
    }

    fn linear(&self) -> bool {
        self.ground.is_confined()
    }
}

impl Case for Posed {
    fn name(&self) -> String {
        self.name.clone()
    }

    fn schedule(&self) -> Schedule {
        self.schedule.clone()
    }

    fn frames(&self) -> Vec<f64> {
        self.outputs.clone()
    }

    fn observed(&self) -> Vec<String> {
        let text = |point: &Observation| {
            let [z, x, y] = point.place;
            format!("{} at x = {x}, y = {y}, z = {z}", point.name)
        };
        self.observations.iter().map(text).collect()
    }

    /// Pressure head at each observation point [m].
    fn observe(&self, _time: f64, heads: &GlobalArray<f64, Ix3>) -> Result<Vec<f64>, Error> {
        let cells: Vec<[usize; 3]> = self.observations.iter().flat_map(|point| point.cells).collect();
        let mut around = vec![0.0; cells.len()];
        heads.gather(&cells, &mut around)?;
        let value = |(heads, point): (&[f64], &Observation)| heads.iter().zip(point.weights).map(|(h, w)| h * w).sum();
        Ok(around.chunks(8).zip(&self.observations).map(value).collect())
    }

    fn judge(&self, history: &[(f64, Vec<f64>)], marched: &Marched) -> Verdict {
        let of_point = |point: &Observation| {
            ["pressure_head_m", "head_m", "water_content"].map(|quantity| format!("{}_{quantity}", point.name))
        };
        let curve = |(place, point): (usize, &Observation)| Curve {
            name: point.name.clone(),
            points: history.iter().map(|(time, heads)| (*time, heads[place])).collect(),
            dots: false,
        };
        Verdict {
            checks: Vec::new(),
            figures: vec![("net_inflow_m3", marched.inflow_volume)],
            columns: std::iter::once("t_s".to_owned()).chain(self.observations.iter().flat_map(of_point)).collect(),
            rows: history.iter().map(|(time, heads)| std::iter::once(*time).chain(self.recorded(heads)).collect()).collect(),
            title: self.title.clone(),
            axes: ("time [s]", "pressure head [m]"),
            curves: self.observations.iter().enumerate().map(curve).collect(),
        }
    }
}
