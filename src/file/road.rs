//! The way of elements between arrays and files.
//!
//! A member moves what it owns where that makes long runs of the file. Otherwise, and for patches, each member moves a part of the file from its
//! first to its last byte: it gets these elements from, or puts them to, members that own them, so that small blocks are collected into
//! large writes (two-phase I/O).
//!
//! # Source
//! R. Thakur, W. Gropp, E. Lusk: *Data Sieving and Collective I/O in ROMIO*, Frontiers 1999, section 5, for collecting; here the second
//! phase is one-sided.

use ndarray::{Dimension, IxDyn};
use rustix::fs::Advice;

use super::{
    erased::{Area, Erased, Stage, axes_of},
    placed::{Opened, Placed},
    visit::Failure,
};
use crate::{
    calls::record,
    error::Result,
    index::Selection,
    sync::{Group, ops},
};

/// Bytes that a member holds besides its part while it reads or writes.
pub(super) const STAGE: usize = 1 << 20;
/// Runs of own blocks of at least this many bytes are written as they are.
const LONG_RUN: usize = 64 << 10;

/// The direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    ToFile,
    FromFile,
}

/// How far a long read or write is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Progress {
    /// Bytes that this member has moved.
    pub done: u64,
    /// Bytes that this member will have moved at the end.
    pub total: u64,
}

/// What is called after each piece.
pub(super) type Report<'a> = Box<dyn FnMut(Progress) + 'a>;

/// A section of an array in a file, with the axes that it keeps.
#[derive(Clone, Debug)]
pub(super) struct Window {
    start: Vec<usize>,
    is_kept: Vec<bool>,
    /// Elements along the axes that are kept.
    pub(super) shape: Vec<usize>,
}

impl Window {
    /// All of it, or what a selection of its axes names.
    pub(super) fn of(placed: &Placed, section: Option<&Selection<IxDyn>>) -> Window {
        let axes = placed.shape.len();
        let Some(Selection { patch, kept }) = section else {
            return Window { start: vec![0; axes], is_kept: vec![true; axes], shape: placed.shape.clone() };
        };
        let in_file = |axes: &[usize]| axes_of(axes, placed.is_reversed);
        let is_kept: Vec<bool> =
            (0..axes).map(|axis| kept.contains(if placed.is_reversed { axes - 1 - axis } else { axis })).collect();
        let counts = in_file(patch.count().slice());
        let shape = counts.iter().zip(&is_kept).filter(|(_, is_kept)| **is_kept).map(|(count, _)| *count).collect();
        Window { start: in_file(patch.start().slice()), is_kept, shape }
    }

    /// Leaves out the first axes, which have one element.
    pub(super) fn drop_first(&mut self, axes: usize) {
        self.is_kept[..axes].fill(false);
        self.shape.drain(..axes);
    }

    /// An area of the window, in the file.
    fn in_file(&self, area: &Area) -> Area {
        let (mut start, mut count) = (self.start.clone(), vec![1; self.start.len()]);
        let axes = (0..start.len()).filter(|&axis| self.is_kept[axis]);
        for (k, axis) in axes.enumerate() {
            start[axis] += area.start[k];
            count[axis] = area.count[k];
        }
        Area { start, count }
    }
}

/// The part of an array that this member moves.
pub(super) struct Share<'a> {
    array: &'a dyn Erased,
    placed: &'a Placed,
    window: Window,
    areas: Vec<Area>,
    /// Bytes that are moved at a time.
    stage: usize,
}

impl<'a> Share<'a> {
    /// A whole array of the file. Collective.
    pub(super) fn of(group: &Group, array: &'a dyn Erased, placed: &'a Placed) -> Result<Self> {
        if let Some(chunk) = placed.chunk() {
            return Ok(Self::in_chunks(group, array, placed, chunk));
        }
        Self::of_window(group, array, placed, Window::of(placed, None))
    }

    /// Whole chunks: those whose first elements a member owns, or as many for each.
    fn in_chunks(group: &Group, array: &'a dyn Erased, placed: &'a Placed, chunk: &[usize]) -> Self {
        let shape = &placed.shape;
        let grid: Vec<usize> = shape.iter().zip(chunk).map(|(extent, chunk)| extent.div_ceil(*chunk)).collect();
        let stage = if placed.is_encoded() { usize::MAX } else { STAGE };
        let area = |number: usize| {
            let mut area = Area { start: vec![0; shape.len()], count: vec![0; shape.len()] };
            let mut rest = number;
            for k in (0..shape.len()).rev() {
                area.start[k] = rest % grid[k] * chunk[k];
                area.count[k] = chunk[k].min(shape[k] - area.start[k]);
                rest /= grid[k];
            }
            area
        };
        let number = grid.iter().product();
        let [from, to] = part(group, number, 1);
        let is_mine = |&(number, ref area): &(usize, Area)| match array.owner(&axes_of(&area.start, placed.is_reversed)) {
            Some(owner) => owner == group.member(),
            None => (from..to).contains(&number),
        };
        let areas = (0..number).map(|number| (number, area(number))).filter(is_mine).map(|(_, area)| area).collect();
        Share { array, placed, window: Window::of(placed, None), areas, stage }
    }

    /// Members agree on how they part the array. Collective.
    pub(super) fn of_window(group: &Group, array: &'a dyn Erased, placed: &'a Placed, window: Window) -> Result<Self> {
        let size = placed.kind.size();
        let mut own = array.own(placed.is_reversed);
        // The shortest run of any member; one that owns nothing does not mind.
        let run = |area: &Area| run(&window.shape, &area.count).saturating_mul(size);
        let shortest = own.as_ref().map_or(0, |own| own.iter().map(run).min().unwrap_or(usize::MAX));
        if group.all_reduce_one(shortest, ops::min)? < LONG_RUN || group.size() == 1 {
            own = None;
        }
        let areas = own.unwrap_or_else(|| {
            let [from, to] = part(group, window.shape.iter().product(), 1);
            parts(&window.shape, from, to)
        });
        Ok(Share { array, placed, window, areas, stage: STAGE })
    }

    /// A part of the file for each member, in the order of the file, that begins at a multiple of `grain` elements.
    pub(super) fn in_order(group: &Group, array: &'a dyn Erased, placed: &'a Placed, grain: usize) -> Self {
        let [from, to] = part(group, placed.shape.iter().product(), grain);
        Share { array, placed, window: Window::of(placed, None), areas: parts(&placed.shape, from, to), stage: STAGE }
    }

    /// The place of the first element in the order of the file.
    pub(super) fn first(&self) -> usize {
        let place = |area: &Area| area.start.iter().zip(&self.window.shape).fold(0, |at, (index, extent)| at * extent + index);
        self.areas.first().map_or(0, place)
    }

    /// Bytes that this member moves.
    pub(super) fn bytes(&self) -> u64 {
        self.areas.iter().map(|area| self.placed.bytes(&area.count) as u64).sum()
    }

    /// Reads them; `seen` is called with the bytes of each piece.
    pub(super) fn read(&self, seen: impl FnMut(&[u8])) -> Result<(), Failure> {
        if self.areas.is_empty() {
            return Ok(());
        }
        self.go_in(&self.placed.open(false)?, Way::FromFile, seen)
    }

    /// Moves them in files that are open; what is written may not be on the disk yet.
    pub(super) fn go_in(&self, opened: &Opened, way: Way, mut seen: impl FnMut(&[u8])) -> Result<(), Failure> {
        let mut stage = Stage::default();
        for area in &self.areas {
            each_piece(area, self.placed.kind.size(), self.stage, &mut |piece| {
                let bytes = stage.bytes(self.placed.bytes(&piece.count));
                self.go_piece(way, opened, piece, bytes)?;
                record::in_files(bytes.len() as u64);
                seen(bytes);
                Ok(())
            })?;
        }
        Ok(())
    }

    fn go_piece(&self, way: Way, opened: &Opened, piece: &Area, bytes: &mut [u8]) -> Result<(), Failure> {
        let there = self.window.in_file(piece);
        if way == Way::ToFile {
            self.array.read(piece, self.placed.is_reversed, bytes)?;
            opened.write(&there.start, &there.count, bytes)?;
            // The kernel begins to write, while this member goes on.
            opened.advise(&there.start, &there.count, Advice::DontNeed);
            Ok(())
        } else {
            opened.read(&there.start, &there.count, bytes)?;
            Ok(self.array.write(piece, self.placed.is_reversed, bytes)?)
        }
    }
}

/// Writes the shares of several arrays, then puts them on the disk: those of one file are there after the first sync.
pub(super) fn write_all(shares: &[Share<'_>], mut seen: impl FnMut(usize, &[u8])) -> Result<(), Failure> {
    let mut written = Vec::new();
    for (number, share) in shares.iter().enumerate().filter(|(_, share)| !share.areas.is_empty()) {
        let opened = share.placed.open(true)?;
        share.go_in(&opened, Way::ToFile, |bytes| seen(number, bytes))?;
        written.push(opened);
    }
    written.iter().try_for_each(Opened::sync)
}

/// From which element to which a member's part reaches.
fn part(group: &Group, len: usize, grain: usize) -> [usize; 2] {
    let grains = len.div_ceil(grain) as u128;
    [0, 1].map(|next| {
        let grains = grains * (group.member() + next) as u128 / group.size() as u128;
        (grains as usize).saturating_mul(grain).min(len)
    })
}

/// Elements in one run of a box of the file.
fn run(shape: &[usize], count: &[usize]) -> usize {
    let mut len = 1;
    for (extent, count) in shape.iter().zip(count).rev() {
        len *= count;
        if extent != count {
            break;
        }
    }
    len
}

/// Boxes that cover the elements from one place to another in the order of the file.
fn parts(shape: &[usize], from: usize, to: usize) -> Vec<Area> {
    let mut parts = Vec::new();
    let (mut from, axes) = (from, shape.len());
    while from < to {
        // The largest box that begins here: whole rows along the last axes, and some along the one before.
        let (mut axis, mut row) = (axes, 1);
        while axis > 0 && from % (row * shape[axis - 1]) == 0 && from + row * shape[axis - 1] <= to {
            axis -= 1;
            row *= shape[axis];
        }
        let mut area = Area { start: vec![0; axes], count: vec![1; axes] };
        area.count[axis..].copy_from_slice(&shape[axis..]);
        let mut rest = from / row;
        for k in (0..axis).rev() {
            (area.start[k], rest) = (rest % shape[k], rest / shape[k]);
        }
        if axis > 0 {
            area.count[axis - 1] = ((to - from) / row).min(shape[axis - 1] - area.start[axis - 1]);
            row *= area.count[axis - 1];
        }
        parts.push(area);
        from += row;
    }
    parts
}

/// Calls `f` with pieces of an area in the order of the file, none larger than a stage unless a single element is.
fn each_piece(area: &Area, size: usize, stage: usize, f: &mut impl FnMut(&Area) -> Result<(), Failure>) -> Result<(), Failure> {
    let len: usize = area.count.iter().product();
    let axis = area.count.iter().position(|&count| count > 1);
    match axis.filter(|_| len * size > stage) {
        None if len == 0 => Ok(()),
        None => f(area),
        Some(axis) => {
            // As many rows as a stage holds.
            let rows = (stage / (len / area.count[axis] * size).max(1)).max(1);
            let mut part = area.clone();
            let end = area.start[axis] + area.count[axis];
            while part.start[axis] < end {
                part.count[axis] = rows.min(end - part.start[axis]);
                each_piece(&part, size, stage, f)?;
                part.start[axis] += rows;
            }
            Ok(())
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn places(shape: &[usize], area: &Area) -> Vec<usize> {
        let mut places = Vec::new();
        let zeros = vec![0; shape.len()];
        super::super::runs::for_each_run([shape, &area.start], [&area.count, &zeros], &area.count, |at, _, len| {
            places.extend(at..at + len);
            Ok::<(), ()>(())
        })
        .unwrap();
        places
    }

    proptest! {
        #[test]
        fn parts_and_pieces_cover_a_file_in_its_order(
            shape in prop::collection::vec(1_usize..9, 0..4),
            cuts in prop::collection::vec(0.0_f64..1.0, 0..4),
            size in prop::sample::select(vec![1, 8, STAGE / 5, STAGE / 2, 2 * STAGE])
        ) {
            let len: usize = shape.iter().product();
            let mut cuts: Vec<usize> = cuts.iter().map(|cut| (cut * len as f64) as usize).chain([0, len]).collect();
            cuts.sort_unstable();
            let mut found = Vec::new();
            for cut in cuts.windows(2) {
                for area in parts(&shape, cut[0], cut[1]) {
                    each_piece(&area, size, STAGE, &mut |piece| {
                        assert!(piece.count.iter().product::<usize>() * size <= STAGE.max(size));
                        found.extend(places(&shape, piece));
                        Ok(())
                    }).unwrap();
                }
            }
            prop_assert_eq!(found, (0..len).collect::<Vec<_>>());
        }
    }
}
