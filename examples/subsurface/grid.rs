//! The grid: a box cut into cells by planes across each axis (a tensor-product grid).
//!
//! Axis 0 points up, 1 and 2 lie in the horizontal plane. A problem in one dimension has one cell along two of them.

/// The cells along one axis, in meters.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Axis {
    /// Where the cells begin and end, ascending: one more than there are cells.
    pub(crate) faces: Vec<f64>,
}

impl Axis {
    /// `cells` equal cells from 0 to `length`.
    pub(crate) fn uniform(cells: usize, length: f64) -> Axis {
        Axis { faces: (0..=cells).map(|face| length * face as f64 / cells as f64).collect() }
    }

    /// `cells` cells from `start` on that fill `length`, each `ratio` times as long as the one before.
    pub(crate) fn geometric(cells: usize, start: f64, length: f64, ratio: f64) -> Axis {
        // Part of the length before a face; a small growth in n steps is a small difference of powers.
        let part = |face: usize| match ratio.ln() {
            0.0 => face as f64 / cells as f64,
            growth => (growth * face as f64).exp_m1() / (growth * cells as f64).exp_m1(),
        };
        Axis { faces: (0..=cells).map(|face| start + length * part(face)).collect() }
    }

    /// `cells` cells from −`half_width` to `half_width`, about as fine as uniform ones within `core` of the middle and growing in
    /// proportion to the distance beyond: the faces are core·sinh(β·ξ) with ξ evenly spaced over [−1, 1].
    pub(crate) fn graded(cells: usize, half_width: f64, core: f64) -> Axis {
        let stretch = (half_width / core).asinh();
        // ξ as a whole number over another, so that the grid is symmetric to the last bit.
        let face = |face: usize| core * (stretch * (2.0 * face as f64 - cells as f64) / cells as f64).sinh();
        Axis { faces: (0..=cells).map(face).collect() }
    }

    /// Number of cells.
    pub(crate) fn cells(&self) -> usize {
        self.faces.len() - 1
    }

    /// Length of a cell.
    pub(crate) fn width(&self, cell: usize) -> f64 {
        self.faces[cell + 1] - self.faces[cell]
    }

    /// Middle of a cell.
    pub(crate) fn centre(&self, cell: usize) -> f64 {
        0.5 * (self.faces[cell] + self.faces[cell + 1])
    }
}

/// Three axes: up, and two horizontal ones.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Grid {
    pub(crate) axes: [Axis; 3],
}

impl Grid {
    /// Cells along each axis.
    pub(crate) fn extents(&self) -> [usize; 3] {
        self.axes.each_ref().map(Axis::cells)
    }

    /// Volume of a cell [m³].
    pub(crate) fn volume(&self, cell: [usize; 3]) -> f64 {
        (0..3).map(|axis| self.axes[axis].width(cell[axis])).product()
    }

    /// Area of a cell's faces across `axis` [m²].
    pub(crate) fn area(&self, axis: usize, cell: [usize; 3]) -> f64 {
        (0..3).filter(|&other| other != axis).map(|other| self.axes[other].width(cell[other])).product()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_graded_axis_is_symmetric_and_grows_outwards() {
        let axis = Axis::graded(33, 500.0, 1.0);
        assert_eq!(axis.cells(), 33);
        assert_eq!(axis.centre(16), 0.0);
        assert!((axis.faces[33] - 500.0).abs() < 1e-10);
        for cell in 0..16 {
            assert_eq!(axis.width(cell), axis.width(32 - cell));
            assert!(axis.width(cell) > axis.width(cell + 1));
        }
    }

    #[test]
    fn a_geometric_axis_grows_by_its_ratio() {
        let axis = Axis::geometric(7, -1.0, 3.0, 1.3);
        assert_eq!([axis.faces[0], axis.faces[7]], [-1.0, 2.0]);
        assert!((1..7).all(|cell| (axis.width(cell) / axis.width(cell - 1) - 1.3).abs() < 1e-12));
        assert_eq!(Axis::geometric(8, 0.0, 2.0, 1.0), Axis::uniform(8, 2.0));
    }

    #[test]
    fn volumes_fill_the_box() {
        let grid = Grid { axes: [Axis::uniform(3, 2.0), Axis::uniform(1, 5.0), Axis::graded(5, 4.0, 0.5)] };
        let [n, _, m] = grid.extents();
        let volume: f64 = (0..n).flat_map(|i| (0..m).map(move |k| [i, 0, k])).map(|cell| grid.volume(cell)).sum();
        assert!((volume - 2.0 * 5.0 * 8.0).abs() < 1e-12);
        assert!((grid.area(0, [1, 0, 2]) - 5.0 * grid.axes[2].width(2)).abs() < 1e-14);
    }
}
