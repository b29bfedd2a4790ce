//! Transposition of matrices that do not fit into memory.
//!
//! Each member takes tile after tile: it reads a tile by rows, turns it in memory, and writes it by rows of the other file. Square tiles make the
//! shortest runs of both files as long as the memory allows: with 64 MiB, rows of 23 KiB. Tiles along the rows of the other file follow
//! each other, so that its pages are completed soon. Cuts lie between pages, or chunks, of the files where that is possible: half a page that
//! has left the cache would be read before the other half is written.
//!
//! The kernel would read such rows one by one, and write late, when its cache is full. So a member tells it which rows come next, and when a tile
//! is complete.
//!
//! # Limit
//! Every run is a request to the disk. On a virtual machine with two cores a request took about 50 µs of a core: `fio` moved 0.4 GB/s each way by
//! direct requests of 20 KiB, twelve at a time, and `dd` 0.9 GB/s by long ones. So 2 GiB in a cgroup of 300 MiB take 6.5 s where a copy by `dd`
//! takes 2.2 to 2.8 s. Larger or fewer tiles, other hints, and hints for the whole span of a tile changed that by less than a tenth. More
//! memory makes longer runs, and helps.

use std::ops::Range;

use ndarray::Ix2;
use rustix::{fs::Advice, param::page_size};

use super::DiskArray;
use crate::{
    calls::located,
    error::{Error, Result},
    file::{
        erased::Area,
        kind::FileElement,
        placed::{Place, Placed},
        road::STAGE,
        visit::Failure,
    },
    sync::{Counter, Op, fingerprint, text_fingerprint},
};

const OPERATION: &str = "transpose_into";
/// Rows that are turned at once: parts of as many elements of the columns of a tile.
const ROWS: usize = 32;
/// Bytes that the kernel reads ahead.
const AHEAD: usize = 4 << 20;

/// # Matrices
impl<T: FileElement> DiskArray<T, Ix2> {
    /// Writes the transpose of the matrix to another one. Collective. A member holds at most the bytes that [`with_memory`](Self::with_memory) sets.
    ///
    /// # Errors
    /// Another shape than that of the transpose; the same file; an array of another group, or one that is open for reading only; a system error on
    /// any member, reported on all; the end of the job. If it fails, the contents of `other` are unspecified.
    #[track_caller]
    pub fn transpose_into(&self, other: &DiskArray<T, Ix2>) -> Result<()> {
        located(|| {
            other.writable(OPERATION)?;
            if !self.group.is_like(&other.group)
                || std::ptr::eq(self, other)
                || self.opened.placed().place == other.opened.placed().place
            {
                let what = format!("{} and {} are of different groups, or the same file", self.name(), other.name());
                return Err(Error::Mismatch { operation: OPERATION.into(), what });
            }
            let expected = [self.shape()[1], self.shape()[0]];
            if expected != other.shape() {
                return Err(other.shape_error(OPERATION, other.shape(), &expected));
            }
            let names = [text_fingerprint(OPERATION), text_fingerprint(&self.name()), text_fingerprint(&other.name())];
            self.group.settle(Op::File, fingerprint(&names))?;
            let numbers = Counter::new(&self.group)?;
            self.visit(OPERATION).agree(self.move_tiles(other, &numbers))
        })
    }

    fn move_tiles(&self, other: &DiskArray<T, Ix2>, numbers: &Counter) -> Result<(), Failure> {
        let (from, to) = (self.opened.placed(), other.opened.placed());
        // Axes in reverse are transposed already.
        let turns = from.is_reversed == to.is_reversed;
        let [rows, cols] = Cuts::both(from, to, turns, self.memory.saturating_sub(STAGE) / from.kind.size().max(1));
        let (mut tile, mut stage) = (Vec::new(), Vec::new());
        let mut last = None;
        for number in numbers.below(rows.number() * cols.number()) {
            let number = number?;
            let (row, col) = (rows.range(number % rows.number()), cols.range(number / rows.number()));
            tile.resize(row.len() * col.len(), T::zeroed());
            let area = Area { start: vec![row.start, col.start], count: vec![row.len(), col.len()] };
            if turns {
                self.read_turned(&area, &mut tile, &mut stage)?;
            } else {
                self.opened.read(&area.start, &area.count, bytemuck::cast_slice_mut(&mut tile))?;
            }
            self.opened.advise(&area.start, &area.count, Advice::DontNeed);
            let there = if turns { area.reversed() } else { area };
            other.opened.write(&there.start, &there.count, bytemuck::cast_slice(&tile))?;
            // The kernel begins to write these pages, and drops those of the last tile, which it has written meanwhile.
            other.opened.advise(&there.start, &there.count, Advice::DontNeed);
            if let Some(Area { start, count }) = last.replace(there) {
                other.opened.advise(&start, &count, Advice::DontNeed);
            }
        }
        Ok(())
    }

    /// Reads an area, with its axes in reverse.
    fn read_turned(&self, area: &Area, tile: &mut [T], stage: &mut Vec<T>) -> Result<(), Failure> {
        let [rows, cols] = [area.count[0], area.count[1]];
        let bytes = (cols * size_of::<T>()).max(1);
        let (at_once, ahead) = ((STAGE / bytes).clamp(1, ROWS), AHEAD / bytes);
        stage.resize(at_once * cols, T::zeroed());
        let mut announced = 0;
        for first in (0..rows).step_by(at_once) {
            let count = at_once.min(rows - first);
            let wanted = rows.min(first + count + ahead);
            // Half of them at a time.
            if wanted > announced && (wanted == rows || wanted >= announced + ahead / 2) {
                self.opened.advise(&[area.start[0] + announced, area.start[1]], &[wanted - announced, cols], Advice::WillNeed);
                announced = wanted;
            }
            let part = &mut stage[..count * cols];
            self.opened.read(&[area.start[0] + first, area.start[1]], &[count, cols], bytemuck::cast_slice_mut(part))?;
            for (col, to) in tile.chunks_exact_mut(rows).enumerate() {
                for (row, to) in to[first..first + count].iter_mut().enumerate() {
                    *to = part[row * cols + col];
                }
            }
        }
        Ok(())
    }
}

impl Area {
    fn reversed(&self) -> Area {
        let reversed = |axes: &[usize]| axes.iter().rev().copied().collect();
        Area { start: reversed(&self.start), count: reversed(&self.count) }
    }
}

/// Where an axis is cut.
struct Cuts {
    extent: usize,
    /// Elements between cuts.
    len: usize,
    /// How much shorter the first part is.
    back: usize,
}

impl Cuts {
    /// Of both axes of a file, for tiles of at most `most` elements.
    fn both(from: &Placed, to: &Placed, turns: bool, most: usize) -> [Cuts; 2] {
        let [rows, cols] = [from.shape[0], from.shape[1]];
        // The rows of a tile are the runs of the other file.
        let grains = if turns { [grain(to), grain(from)] } else { [(0, 1), grain(from)] };
        let most = most.max(1);
        let side = most.isqrt();
        let width = (most / rows.clamp(1, side)).min(cols);
        let height = most / width.max(1);
        let cuts = |extent: usize, most: usize, (back, grain): (usize, usize)| {
            // As even as whole grains allow.
            let most = most.max(1);
            let even = extent.div_ceil(extent.div_ceil(most).max(1)).next_multiple_of(grain);
            let len = if even <= most { even } else { most - most % grain };
            if len == 0 { Cuts { extent, len: most, back: 0 } } else { Cuts { extent, len, back } }
        };
        [cuts(rows, height, grains[0]), cuts(cols, width, grains[1])]
    }

    fn number(&self) -> usize {
        if self.extent == 0 { 0 } else { (self.extent + self.back).div_ceil(self.len) }
    }

    fn range(&self, number: usize) -> Range<usize> {
        let cut = |number: usize| (number * self.len).saturating_sub(self.back).min(self.extent);
        cut(number)..cut(number + 1)
    }
}

/// Elements of a row in a page or chunk, and how many of the first one are before the row.
fn grain(placed: &Placed) -> (usize, usize) {
    let (size, page) = (placed.kind.size().max(1), page_size());
    match (&placed.place, placed.shape.last()) {
        (Place::Chunks { chunk, .. }, _) => (0, chunk[chunk.len() - 1]),
        (Place::Contiguous { begin, .. }, Some(row))
            if row * size % page == 0 && page % size == 0 && begin % size as u64 == 0 =>
        {
            ((*begin % page as u64) as usize / size, page / size)
        }
        _ => (0, 1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cuts_cover_an_axis_between_pages() {
        for (extent, len, back) in [(0, 5, 0), (1, 5, 4), (10, 5, 0), (10, 5, 2), (12, 4, 3), (3, 7, 0)] {
            let cuts = Cuts { extent, len, back };
            let all: Vec<usize> = (0..cuts.number()).flat_map(|number| cuts.range(number)).collect();
            assert_eq!(all, (0..extent).collect::<Vec<_>>());
            for number in 1..cuts.number() {
                assert_eq!((cuts.range(number).start + back) % len, 0);
            }
        }
    }
}
