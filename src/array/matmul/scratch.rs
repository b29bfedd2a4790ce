//! Memory that stays with a thread between products: fresh pages cost more than the copy into them.

use std::{cell::Cell, thread::LocalKey};

use bytemuck::{Pod, Zeroable};

use crate::element::Element;

/// A cache line, to which scratch memory is aligned.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C, align(64))]
pub(super) struct Line([u8; 64]);

/// Runs `body` with memory for some elements, of unspecified contents.
pub(super) fn with<T: Element, R>(
    memory: &'static LocalKey<Cell<Vec<Line>>>,
    elements: usize,
    body: impl FnOnce(&mut [T]) -> R,
) -> R {
    let bytes = elements * size_of::<T>();
    let mut lines = memory.take();
    let count = bytes.div_ceil(size_of::<Line>());
    if lines.len() < count {
        lines.resize(count, Line::zeroed());
    }
    let result = body(bytemuck::cast_slice_mut(&mut bytemuck::cast_slice_mut::<_, u8>(&mut lines)[..bytes]));
    memory.set(lines);
    result
}
