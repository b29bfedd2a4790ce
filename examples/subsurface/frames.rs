//! Frames: the whole field at the times of output, in VTK files of a rectilinear grid, which ParaView opens.
//!
//! Each cell has its pressure head and hydraulic head [m], water content, conductivity along x [m/s] and number of its material.

use std::path::Path;

use global_arrays::file::FileWriter;
use global_arrays::prelude::*;
use program::frames::COLLECTION;

use crate::cases::Case;

/// The frames of a run, in a folder.
pub(crate) struct Frames<'a> {
    folder: &'a Path,
    case: &'a dyn Case,
    times: Vec<f64>,
    /// Values of cells along the axes z, y, x of VTK: pressure head, head, water content. They are computed again for each frame.
    changing: [GlobalArray3<f64>; 3],
    conductivity: GlobalArray3<f64>,
    material: GlobalArray3<i32>,
}

impl<'a> Frames<'a> {
    /// Frames of time zero and of the times of output. Collective.
    pub(crate) fn new(job: &Job, folder: &'a Path, case: &'a dyn Case) -> Result<Self, Error> {
        let [nz, nx, ny] = case.grid().extents();
        let extents = [nz, ny, nx];
        let conductivity = GlobalArray3::from_fn(job, extents, |(i, k, j)| case.conductivity(1, [i, j, k]))?;
        let material = GlobalArray3::from_fn(job, extents, |(i, k, j)| case.material([i, j, k]) as i32)?;
        let array = |name| conductivity.duplicate(name);
        let changing = [array("pressure head")?, array("head")?, array("water content")?];
        Ok(Frames { folder, case, times: [0.0].into_iter().chain(case.frames()).collect(), changing, conductivity, material })
    }

    /// Writes the frame of a time if there is one; heads are those of all cells. Collective.
    ///
    /// # Errors
    /// One line that names the file.
    pub(crate) fn write(&self, time: f64, heads: &GlobalArray<f64, Ix3>) -> Result<(), Error> {
        if !self.times.contains(&time) {
            return Ok(());
        }
        let (case, grid) = (self.case, self.case.grid());
        for block in self.conductivity.own_blocks() {
            let [start, count] = [block.patch.start(), block.patch.count()].map(|axes| [axes[0], axes[1], axes[2]]);
            let [z, y, x] = [0, 1, 2].map(|axis| start[axis]..start[axis] + count[axis]);
            let heads = heads.get(s![z.clone(), x.clone(), y.clone()])?;
            let put = |array: &GlobalArray3<f64>, value: &dyn Fn([usize; 3], f64) -> f64| {
                let of = |(i, k, j)| value([start[0] + i, start[2] + j, start[1] + k], heads[[i, j, k]]);
                array.put(s![z.clone(), y.clone(), x.clone()], &Array3::from_shape_fn(count, of))
            };
            let height = |cell: [usize; 3]| if case.weight() { grid.axes[0].centre(cell[0]) } else { 0.0 };
            let [pressure_head, head, content] = &self.changing;
            put(pressure_head, &|_, head| head)?;
            put(head, &|cell, head| head + height(cell))?;
            put(content, &|cell, head| case.medium(cell).at(head).content)?;
        }
        let [pressure_head, head, content] = &self.changing;
        let mut file = FileWriter::new(self.folder.join(COLLECTION)).at_time(time);
        file = file.array("pressure_head", pressure_head).axes(["z", "y", "x"]).array("head", head);
        file = file.array("water_content", content).array("conductivity", &self.conductivity).array("material", &self.material);
        for (axis, name) in [(1, "x"), (2, "y"), (0, "z")] {
            file = file.coordinate(name, &grid.axes[axis].faces);
        }
        file.save()
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use global_arrays::file::FileReader;

    use super::*;
    use crate::cases::heterogeneous::Heterogeneous;
    use crate::cli::Arguments;
    use crate::problem::Problem;

    #[test]
    fn axes_are_those_of_vtk() {
        let line = "subsurface --case heterogeneous --cells 2x3x4";
        let case = Heterogeneous::new(&Arguments::try_parse_from(line.split(' ')).unwrap()).unwrap();
        let folder = std::env::temp_dir().join(format!("subsurface-frames-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let body = |job: &Job| {
            let heads = GlobalArray3::from_fn(job, [2, 3, 4], |(i, j, k)| -((100 * i + 10 * j + k) as f64))?;
            Frames::new(job, &folder, &case)?.write(0.0, &heads)?;
            let file = FileReader::open(job, folder.join("frames-0000.vtr"))?;
            let load = |name| file.load::<f64, Ix3>(name)?.get(..);
            // x is fastest, then y, then z.
            assert_eq!(load("pressure_head")?.as_slice().unwrap()[..6], [-0.0, -10.0, -20.0, -1.0, -11.0, -21.0]);
            assert_eq!(load("head")?[[1, 2, 1]], -112.0 + case.grid().axes[0].centre(1));
            assert_eq!(load("conductivity")?[[1, 3, 2]], case.conductivity(1, [1, 2, 3]));
            assert_eq!(load("water_content")?[[0, 1, 2]], case.medium([0, 2, 1]).at(-21.0).content);
            assert_eq!(file.load::<i32, Ix3>("material")?.get(..)?[[1, 0, 1]], case.material([1, 1, 0]) as i32);
            assert_eq!(file.load::<f64, Ix1>("z")?.get(..)?.to_vec(), case.grid().axes[0].faces);
            assert_eq!(file.load::<f64, Ix1>("y")?.len(), 5);
            job.sync()
        };
        Launch::new().ranks(3).network("threads").run(body).unwrap();
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
