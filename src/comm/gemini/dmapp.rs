//! The calls of DMAPP that are used, and how its widths fit a range.

use std::fmt;

use crate::comm::Atomic;

/// Elements of DMAPP: their bytes are the alignment of both sides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Element {
    Byte = 1,
    Word4 = 4,
    Word8 = 8,
    Word16 = 16,
}

impl Element {
    pub(super) fn bytes(self) -> usize {
        self as usize
    }
}

/// Memory that DMAPP knows: its handle of 128 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct DmappSegment(pub(super) [u64; 2]);

/// A work that was begun (`dmapp_syncid_handle_t`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SyncId(pub(super) u64);

/// Why a call was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum DmappRefusal {
    /// Too many works are under way (`DMAPP_RC_NO_SPACE`).
    NoSpace,
    Why(String),
}

/// What was granted (`dmapp_get_rma_attrs`).
#[derive(Clone, Copy, Debug)]
pub(super) struct Granted {
    /// Works under way (`max_outstanding_nb`).
    pub(super) outstanding: usize,
    /// Ordering is strict: what has ended is visible.
    pub(super) strict: bool,
}

/// The elements of a remote side.
#[derive(Clone, Copy, Debug)]
pub(super) struct RemoteElements {
    pub(super) pe: usize,
    pub(super) segment: DmappSegment,
    pub(super) address: u64,
    pub(super) count: usize,
    pub(super) element: Element,
}

/// DMAPP, driven by one thread at a time. No call blocks. Elements land whole.
pub(super) trait Dmapp: Send + fmt::Debug + 'static {
    fn granted(&self) -> Granted;

    /// `dmapp_mem_register`.
    ///
    /// # Safety
    /// The memory stays mapped until it is unregistered, and nobody holds Rust references to it.
    unsafe fn register(&mut self, start: *mut u8, len: usize) -> Result<DmappSegment, String>;

    /// `dmapp_mem_unregister`. Nobody uses the memory any more on return.
    fn unregister(&mut self, segment: DmappSegment);

    /// `dmapp_put_nb`.
    ///
    /// # Safety
    /// The bytes here stay as they are until the work has ended.
    unsafe fn put(&mut self, to: RemoteElements, from: *const u8) -> Result<SyncId, DmappRefusal>;

    /// `dmapp_get_nb`.
    ///
    /// # Safety
    /// The bytes here may be written, and nobody touches them, until the work has ended.
    unsafe fn get(&mut self, from: RemoteElements, to: *mut u8) -> Result<SyncId, DmappRefusal>;

    /// `dmapp_afadd_qw_nb`, `afand`, `afor`, `afxor`, `dmapp_acswap_qw_nb`: changes a word of eight bytes. A load adds nothing.
    ///
    /// # Safety
    /// As [`get`](Self::get), for the eight bytes of the old value.
    unsafe fn change(&mut self, word: RemoteElements, atomic: Atomic, old: *mut u8) -> Result<SyncId, DmappRefusal>;

    /// `dmapp_syncid_test`: true once the work has ended; then nobody asks again.
    fn test(&mut self, work: SyncId) -> Result<bool, String>;

    /// Goes on, in software that has no thread of its own.
    fn go_on(&mut self) {}

    /// `dmapp_finalize`. Nothing moves on return.
    fn finalize(&mut self);
}

/// Parts of a range, at most: bytes up to a word, words, a word of 8 and one of 4, bytes.
pub(super) const PARTS: usize = 5;

/// A range in elements: the place of each part in it, the number of its elements, and which. Each is as wide as both sides and what is left allow.
pub(super) fn parts(there: u64, here: *const u8, len: usize) -> impl Iterator<Item = (usize, usize, Element)> {
    const WORD: usize = Element::Word4 as usize;
    let (there, here, mut at) = (there as usize, here.addr(), 0);
    std::iter::from_fn(move || {
        let (start, rest) = (at, len - at);
        let fits = |element: &Element| rest >= element.bytes() && ((there + at) | (here + at)).is_multiple_of(element.bytes());
        let element = [Element::Word16, Element::Word8, Element::Word4, Element::Byte].into_iter().find(fits)?;
        let count = match element {
            // Up to the first word, if both sides come to one.
            Element::Byte if (there ^ here).is_multiple_of(WORD) => rest.min(WORD - (there + at) % WORD),
            _ => rest / element.bytes(),
        };
        at += count * element.bytes();
        Some((start, count, element))
    })
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn parts_cover_a_range_by_the_widest_elements_that_fit() {
        for there in 0..40_u64 {
            for here in 0..40_usize {
                for len in 1..70 {
                    let mut at = 0;
                    assert!(parts(there, std::ptr::without_provenance(here), len).count() <= PARTS);
                    for (start, count, element) in parts(there, std::ptr::without_provenance(here), len) {
                        assert_eq!(start, at);
                        assert!((there as usize + start).is_multiple_of(element.bytes()), "{there} {here} {len}");
                        assert!((here + start).is_multiple_of(element.bytes()), "{there} {here} {len}");
                        at += count * element.bytes();
                    }
                    assert_eq!(at, len);
                }
            }
        }
        let of = |there, here, len| parts(there, std::ptr::without_provenance(here), len).collect::<Vec<_>>();
        assert_eq!(of(32, 64, 64), [(0, 4, Element::Word16)]);
        assert_eq!(of(8, 16, 24), [(0, 3, Element::Word8)]);
        assert_eq!(of(3, 7, 10), [(0, 1, Element::Byte), (1, 2, Element::Word4), (9, 1, Element::Byte)]);
        assert_eq!(of(32, 16, 36), [(0, 2, Element::Word16), (32, 1, Element::Word4)]);
        assert_eq!(of(0, 1, 9), [(0, 9, Element::Byte)]);
    }
}
