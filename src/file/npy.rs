//! The header of a `.npy` file: element type, order and shape.
//!
//! ```text
//!  \x93NUMPY  major minor  length of the text   {'descr': '<f8', 'fortran_order': False, 'shape': (3, 4), }   \n
//!     6 B       1 B   1 B   2 B (4 B from 2.0)   padded with blanks so that the elements begin at a multiple of 64
//! ```
//!
//! The text is a Python literal. Only these keys and the values that NumPy writes are accepted.
//!
//! # Source
//! NumPy, NEP 1 and `numpy.lib.format`.

use std::{fs::File, os::unix::fs::FileExt, path::Path};

use super::{
    contents::Contents,
    kind::Kind,
    placed::{Place, Placed},
    variable::Variable,
    visit::Failure,
};
use crate::memory::limits;

/// Bytes before the length of the text.
const PREAMBLE: usize = 8;
const MAGIC: &[u8] = b"\x93NUMPY";
/// The elements begin at a multiple of this.
const ALIGN: usize = 64;
/// No header is longer; numpy itself refuses more than 10,000 bytes of text.
const LONGEST: usize = 1 << 20;

/// Makes a file, and returns where the elements go.
pub(super) fn create(path: &Path, variable: &Variable) -> Result<Placed, Failure> {
    let header = Header { descr: variable.kind.descr(), fortran_order: false, shape: variable.shape.clone() }.encode();
    let begin = header.len() as u64;
    let len = variable.bytes().and_then(|bytes| begin.checked_add(bytes)).unwrap_or(u64::MAX);
    limits::check_file(len)?;
    let file = File::options().write(true).create_new(true).open(path)?;
    file.write_all_at(&header, 0)?;
    file.set_len(len)?;
    let (kind, shape) = (variable.kind, variable.shape.clone());
    Ok(Placed { kind, shape, is_reversed: false, is_swapped: false, place: Place::Contiguous { file: path.to_owned(), begin } })
}

/// What a file holds: one array, without a name.
pub(super) fn open(path: &Path) -> Result<Contents, Failure> {
    let file = File::open(path)?;
    let present = file.metadata()?.len();
    let mut bytes = vec![0; present.min(12) as usize];
    file.read_exact_at(&mut bytes, 0)?;
    let begin = Header::len(&bytes).map_err(Failure::Format)?;
    bytes.resize((begin as u64).min(present) as usize, 0);
    file.read_exact_at(&mut bytes, 0)?;
    let header = Header::decode(&bytes).map_err(Failure::Format)?;
    let Some((kind, is_swapped)) = Kind::named(&header.descr) else {
        return Err(Failure::Format(format!("has elements of type '{}', which no array here has", header.descr)));
    };
    let variable = Variable::new("", kind, &header.shape);
    let left = present - begin as u64;
    if variable.bytes().is_none_or(|needed| needed > left) {
        return Err(Failure::Format(format!(
            "has {left} bytes of elements; its shape {:?} of '{}' needs {}",
            header.shape,
            header.descr,
            variable.bytes().map_or("more than 2^64".into(), |needed| needed.to_string())
        )));
    }
    let place = Place::Contiguous { file: path.to_owned(), begin: begin as u64 };
    let shape = super::erased::axes_of(&header.shape, header.fortran_order);
    Ok(Contents::of(variable, Placed { kind, shape, is_reversed: header.fortran_order, is_swapped, place }))
}

/// What a header says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) descr: String,
    pub(super) fortran_order: bool,
    pub(super) shape: Vec<usize>,
}

impl Header {
    /// The bytes of a file before its elements.
    pub(super) fn encode(&self) -> Vec<u8> {
        let order = if self.fortran_order { "True" } else { "False" };
        let mut shape: String = self.shape.iter().map(|n| format!("{n}, ")).collect();
        // One axis keeps its comma, as Python's tuples do.
        shape.truncate(shape.len().saturating_sub(if self.shape.len() == 1 { 1 } else { 2 }));
        let text = format!("{{'descr': '{}', 'fortran_order': {order}, 'shape': ({shape}), }}", self.descr);
        let long = PREAMBLE + 2 + text.len() + ALIGN > usize::from(u16::MAX);
        let before = PREAMBLE + if long { 4 } else { 2 };
        let end = (before + text.len() + 1).next_multiple_of(ALIGN);
        let mut bytes = MAGIC.to_vec();
        bytes.extend([if long { 2 } else { 1 }, 0]);
        bytes.extend(&((end - before) as u32).to_le_bytes()[..before - PREAMBLE]);
        bytes.extend(text.bytes());
        bytes.resize(end - 1, b' ');
        bytes.push(b'\n');
        bytes
    }

    /// Bytes of the whole header, given as many of its first bytes as there are, 12 at most.
    pub(super) fn len(first: &[u8]) -> Result<usize, String> {
        if !first.starts_with(MAGIC) {
            let found = &first[..first.len().min(MAGIC.len())];
            return Err(format!("begins with \"{}\"; a .npy file begins with \"\\x93NUMPY\"", found.escape_ascii()));
        }
        let cut = || format!("ends after {} bytes, inside its header", first.len());
        let length = match first.get(MAGIC.len()..PREAMBLE).ok_or_else(cut)? {
            [1, 0] => first.get(PREAMBLE..PREAMBLE + 2),
            [2 | 3, 0] => first.get(PREAMBLE..PREAMBLE + 4),
            version => return Err(format!("has format version {}.{}; 1.0, 2.0 and 3.0 are known", version[0], version[1])),
        };
        let length = length.ok_or_else(cut)?;
        let text = length.iter().rev().fold(0, |sum, &byte| sum << 8 | usize::from(byte));
        if text > LONGEST {
            return Err(format!("announces a header of {text} bytes; at most {LONGEST} are expected"));
        }
        Ok(PREAMBLE + length.len() + text)
    }

    /// Reads the bytes that [`len`](Self::len) counted.
    pub(super) fn decode(bytes: &[u8]) -> Result<Header, String> {
        let end = Self::len(&bytes[..bytes.len().min(PREAMBLE + 4)])?;
        if bytes.len() < end {
            return Err(format!("ends after {} bytes, inside its header of {end}", bytes.len()));
        }
        let begin = PREAMBLE + if bytes[MAGIC.len()] == 1 { 2 } else { 4 };
        let text = std::str::from_utf8(&bytes[begin..end]).map_err(|error| format!("has a header that is no text: {error}"))?;
        let refused = |what: String| format!("has a header that cannot be read: {what} in {:?}", text.trim_end());
        Literal { rest: text }.header().map_err(refused)
    }
}

/// What is left of a Python literal.
struct Literal<'a> {
    rest: &'a str,
}

impl<'a> Literal<'a> {
    fn header(mut self) -> Result<Header, String> {
        let (mut descr, mut fortran_order, mut shape) = (None, None, None);
        self.expect("{")?;
        while !self.accept("}") {
            let key = self.string()?;
            self.expect(":")?;
            let again = match key {
                "descr" => descr.replace(self.string()?.to_owned()).is_some(),
                "fortran_order" => fortran_order.replace(self.boolean()?).is_some(),
                "shape" => shape.replace(self.tuple()?).is_some(),
                _ => return Err(format!("an unknown key '{key}'")),
            };
            if again {
                return Err(format!("the key '{key}' twice"));
            }
            if !self.accept(",") {
                self.expect("}")?;
                break;
            }
        }
        if !self.rest.trim().is_empty() {
            return Err(format!("{:?} after the end", self.rest.trim()));
        }
        match (descr, fortran_order, shape) {
            (Some(descr), Some(fortran_order), Some(shape)) => Ok(Header { descr, fortran_order, shape }),
            _ => Err("not all of the keys 'descr', 'fortran_order', 'shape'".into()),
        }
    }

    fn accept(&mut self, token: &str) -> bool {
        self.rest = self.rest.trim_start();
        let rest = self.rest.strip_prefix(token);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    fn expect(&mut self, token: &str) -> Result<(), String> {
        if self.accept(token) { Ok(()) } else { Err(format!("no '{token}' before {:?}", self.here())) }
    }

    /// The next few characters, for errors.
    fn here(&self) -> &'a str {
        self.rest.char_indices().nth(12).map_or(self.rest, |(end, _)| &self.rest[..end])
    }

    fn string(&mut self) -> Result<&'a str, String> {
        let quote = if self.accept("'") {
            '\''
        } else if self.accept("\"") {
            '"'
        } else {
            return Err(format!("no string before {:?} (a type with fields is not supported)", self.here()));
        };
        let (string, rest) = self.rest.split_once(quote).ok_or("a string without end")?;
        self.rest = rest;
        Ok(string)
    }

    fn boolean(&mut self) -> Result<bool, String> {
        if self.accept("True") {
            Ok(true)
        } else if self.accept("False") {
            Ok(false)
        } else {
            Err(format!("neither True nor False before {:?}", self.here()))
        }
    }

    fn tuple(&mut self) -> Result<Vec<usize>, String> {
        let mut numbers = Vec::new();
        self.expect("(")?;
        while !self.accept(")") {
            self.rest = self.rest.trim_start();
            let end = self.rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(self.rest.len());
            let (digits, rest) = self.rest.split_at(end);
            numbers.push(digits.parse().map_err(|_| format!("no extent before {:?}", self.here()))?);
            self.rest = rest;
            // Python 2 wrote long integers with a letter.
            self.accept("L");
            if !self.accept(",") {
                self.expect(")")?;
                break;
            }
        }
        Ok(numbers)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn header(shape: &[usize]) -> Header {
        Header { descr: "<f8".into(), fortran_order: false, shape: shape.to_vec() }
    }

    #[test]
    fn the_text_is_numpys() {
        // numpy.save of numpy.zeros((3, 4)) and numpy.zeros(5).
        let text = |header: Header| String::from_utf8(header.encode()[10..].to_vec()).unwrap();
        assert_eq!(text(header(&[3, 4])).trim_end(), "{'descr': '<f8', 'fortran_order': False, 'shape': (3, 4), }");
        assert_eq!(text(header(&[5])).trim_end(), "{'descr': '<f8', 'fortran_order': False, 'shape': (5,), }");
        assert_eq!(header(&[3, 4]).encode()[..10], *b"\x93NUMPY\x01\x00\x76\x00");
        assert_eq!(header(&[3, 4]).encode().len(), 128);
    }

    #[test]
    fn a_long_header_has_version_2() {
        let long = header(&[1_234_567; 10_000]);
        let bytes = long.encode();
        assert_eq!(bytes[6], 2);
        assert_eq!(bytes.len() % ALIGN, 0);
        assert_eq!(Header::decode(&bytes), Ok(long));
    }

    #[test]
    fn refusals_say_what_was_found() {
        let refusal = |text: &str| {
            let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
            bytes.extend((text.len() as u16).to_le_bytes());
            bytes.extend(text.bytes());
            Header::decode(&bytes).unwrap_err()
        };
        assert!(Header::decode(b"PK\x03\x04").unwrap_err().contains("PK\\x03\\x04"));
        assert!(Header::decode(b"\x93NUMPY\x07\x00\x10\x00").unwrap_err().contains("7.0"));
        assert!(Header::decode(b"\x93NUM").unwrap_err().contains("begins with"));
        assert!(Header::decode(b"\x93NUMPY\x02\x00\xff\xff\xff\xff").unwrap_err().contains("4294967295"));
        assert!(refusal("{'descr': [('a', '<f8')], 'fortran_order': False, 'shape': ()}").contains("fields"));
        assert!(refusal("{'descr': '<f8', 'fortran_order': 0, 'shape': ()}").contains("True nor False"));
        assert!(refusal("{'descr': '<f8', 'fortran_order': True, 'shape': (-1,)}").contains("\"-1,"));
        assert!(refusal("{'descr': '<f8', 'fortran_order': True, 'shape': (99999999999999999999,)}").contains("99999"));
        for [key, value] in [["descr", "'<f8'"], ["fortran_order", "False"], ["shape", "(3,)"]] {
            let twice = format!("'{key}': {value}, '{key}': {value}");
            let rest = "'descr': '<f8', 'fortran_order': False, 'shape': (3,)".replace(&format!("'{key}': {value}"), &twice);
            assert!(refusal(&format!("{{{rest}}}")).contains(&format!("'{key}' twice")), "{rest}");
        }
        let whole = "{'descr': '<f8', 'fortran_order': True, 'shape': ()}";
        for after in [" x", "}", whole, "\n\0"] {
            assert!(refusal(&format!("{whole}{after}")).contains("after the end"), "{after:?}");
        }
        assert!(refusal("{'descr': '<f8'}").contains("not all"));
        assert!(refusal("{'colour': 'red'}").contains("colour"));
        assert!(refusal("{'descr': '<f8").contains("without end"));
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(shape in prop::collection::vec(any::<usize>(), 0..6), fortran_order: bool) {
            let header = Header { descr: "<c16".into(), fortran_order, shape };
            let bytes = header.encode();
            prop_assert_eq!(Header::len(&bytes[..12]), Ok(bytes.len()));
            prop_assert_eq!(Header::decode(&bytes), Ok(header));
        }

        #[test]
        fn damaged_headers_never_panic(at in 0_usize..128, byte: u8, end in 0_usize..=128) {
            let mut bytes = header(&[3, 4]).encode();
            bytes[at] = byte;
            let _ = Header::decode(&bytes);
            let _ = Header::decode(&bytes[..end]);
        }

        #[test]
        fn random_literals_never_panic(text in "[{}('descr,: \"fotan_shpTFule0-9L)é]*") {
            let _ = Literal { rest: &text }.header();
        }
    }
}
