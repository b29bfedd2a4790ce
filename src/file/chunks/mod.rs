//! Chunks of an array that are files of their own, compressed or not, as in Zarr stores.

mod codecs;
mod grid;
mod open;
mod recent;

#[cfg(test)]
pub(super) use codecs::encode;
pub(super) use codecs::{Codec, added};
pub(super) use grid::{Grid, Keys, Shard};
pub(super) use open::{LARGEST_DECODED, OpenGrid};
