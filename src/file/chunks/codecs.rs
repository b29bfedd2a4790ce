//! What the bytes of a chunk go through: compression and checksums.
//!
//! # Source
//! Zarr core specification 3.1, codecs `gzip`, `zstd` and `crc32c`; numcodecs for those of version 2.

use std::{
    borrow::Cow,
    io::{self, Read, Write},
};

use flate2::read::{GzEncoder, MultiGzDecoder, ZlibDecoder, ZlibEncoder};
use serde_json::{Value, json};

use crate::{file::variable::Compression, portable::Portable};

/// Bytes of a checksum.
const CHECKSUM: usize = 4;

/// One step from bytes to bytes, with the level of a compression.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::file) enum Codec {
    Gzip(i32),
    Zlib(i32),
    Zstd(i32),
    /// A checksum after the bytes.
    Crc32c,
}

impl From<Compression> for Codec {
    fn from(compression: Compression) -> Self {
        match compression {
            Compression::Zstd(level) => Codec::Zstd(level),
            Compression::Gzip(level) => Codec::Gzip(level.min(9) as i32),
        }
    }
}

impl Codec {
    /// By its name in metadata; none if it is not known.
    pub(in crate::file) fn named(name: &str, configuration: &Value) -> Option<Codec> {
        let level = || configuration["level"].as_i64().and_then(|level| i32::try_from(level).ok()).unwrap_or(1);
        Some(match name {
            "gzip" | "numcodecs.gzip" => Codec::Gzip(level()),
            "zlib" | "numcodecs.zlib" => Codec::Zlib(level()),
            "zstd" | "numcodecs.zstd" => Codec::Zstd(level()),
            "crc32c" => Codec::Crc32c,
            _ => return None,
        })
    }

    /// Its metadata.
    pub(in crate::file) fn json(self) -> Value {
        match self {
            Codec::Gzip(level) => json!({"name": "gzip", "configuration": {"level": level}}),
            Codec::Zlib(level) => json!({"name": "numcodecs.zlib", "configuration": {"level": level}}),
            Codec::Zstd(level) => json!({"name": "zstd", "configuration": {"level": level, "checksum": false}}),
            Codec::Crc32c => json!({"name": "crc32c"}),
        }
    }

    fn encode(self, bytes: Cow<'_, [u8]>) -> io::Result<Vec<u8>> {
        let level = |level: i32| flate2::Compression::new(level.clamp(0, 9) as u32);
        let mut encoded = Vec::new();
        match self {
            Codec::Gzip(n) => GzEncoder::new(&bytes[..], level(n)).read_to_end(&mut encoded)?,
            Codec::Zlib(n) => ZlibEncoder::new(&bytes[..], level(n)).read_to_end(&mut encoded)?,
            Codec::Zstd(n) => {
                let levels = zstd::compression_level_range();
                return zstd::bulk::compress(&bytes, n.clamp(*levels.start(), *levels.end()));
            }
            Codec::Crc32c => {
                let sum = crc32c::crc32c(&bytes).to_le_bytes();
                let mut bytes = bytes.into_owned();
                bytes.extend(sum);
                return Ok(bytes);
            }
        };
        Ok(encoded)
    }

    /// At most one byte more than `longest`.
    fn decode(self, mut bytes: Vec<u8>, longest: usize) -> io::Result<Vec<u8>> {
        // What is announced may be a lie: memory grows with what there is.
        let mut decoded = Vec::with_capacity(longest.min(bytes.len().saturating_mul(8)));
        let longest = longest as u64 + 1;
        match self {
            Codec::Gzip(_) => MultiGzDecoder::new(&bytes[..]).take(longest).read_to_end(&mut decoded)?,
            Codec::Zlib(_) => ZlibDecoder::new(&bytes[..]).take(longest).read_to_end(&mut decoded)?,
            Codec::Zstd(_) => zstd::Decoder::with_buffer(&bytes[..])?.take(longest).read_to_end(&mut decoded)?,
            Codec::Crc32c => {
                let sum = bytes.split_off(bytes.len().saturating_sub(CHECKSUM));
                if sum != crc32c::crc32c(&bytes).to_le_bytes() {
                    return Err(io::Error::other("its checksum is wrong"));
                }
                return Ok(bytes);
            }
        };
        Ok(decoded)
    }
}

/// What a chunk's bytes become.
pub(in crate::file) fn encode(codecs: &[Codec], bytes: &[u8]) -> io::Result<Vec<u8>> {
    let encoded = codecs.iter().try_fold(Cow::Borrowed(bytes), |bytes, codec| codec.encode(bytes).map(Cow::Owned));
    encoded.map(Cow::into_owned)
}

/// The `len` bytes that became these.
pub(in crate::file) fn decode(codecs: &[Codec], bytes: Vec<u8>, len: usize) -> Result<Vec<u8>, String> {
    let longest = longest_encoded(len);
    let decoded = codecs.iter().rev().try_fold(bytes, |bytes, codec| codec.decode(bytes, longest));
    let decoded = decoded.map_err(|error| format!("cannot be decoded: {error}"))?;
    if decoded.len() == len {
        Ok(decoded)
    } else {
        let more = if decoded.len() > len { " or more" } else { "" };
        Err(format!("has {}{more} decoded bytes; {len} are expected", decoded.len()))
    }
}

/// No codec makes more of `len` bytes.
pub(in crate::file) fn longest_encoded(len: usize) -> usize {
    len + len / 8 + (1 << 16)
}

/// Bytes that these codecs add to any number of bytes; none if that depends on the bytes.
pub(in crate::file) fn added(codecs: &[Codec]) -> Option<usize> {
    codecs.iter().all(|codec| *codec == Codec::Crc32c).then_some(CHECKSUM * codecs.len())
}

impl Portable for Codec {
    fn write(&self, to: &mut dyn Write) -> io::Result<()> {
        match *self {
            Codec::Gzip(level) => (0_u8, level).write(to),
            Codec::Zlib(level) => (1_u8, level).write(to),
            Codec::Zstd(level) => (2_u8, level).write(to),
            Codec::Crc32c => (3_u8, 0).write(to),
        }
    }

    fn read(from: &mut dyn Read) -> io::Result<Self> {
        Ok(match <(u8, i32)>::read(from)? {
            (0, level) => Codec::Gzip(level),
            (1, level) => Codec::Zlib(level),
            (2, level) => Codec::Zstd(level),
            _ => Codec::Crc32c,
        })
    }
}
