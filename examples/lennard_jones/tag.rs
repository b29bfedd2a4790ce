//! What is at a place: which atom, and of which kind.

/// The number of a place's atom, counted from 1, and its kind, in one word of a global array. 0 where there is no atom.
pub(crate) fn tag(number: u64, kind: u16) -> u64 {
    number | u64::from(kind) << 48
}

/// The number, counted from 1; 0 where there is no atom.
pub(crate) fn number(tag: u64) -> u64 {
    tag & ((1 << 48) - 1)
}

/// The kind.
pub(crate) fn kind(tag: u64) -> usize {
    (tag >> 48) as usize
}
