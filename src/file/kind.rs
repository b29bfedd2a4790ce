//! Element types of files.

use std::io::{self, Read, Write};

use num_complex::Complex;

use crate::{element::Element, portable::Portable};

/// An element that files can hold.
///
/// You can implement it for your own plain struct with a void type of its size, for example `"|V24"`; `.npy` files and raw files hold it.
pub trait FileElement: Element {
    /// NumPy's name of the type, little-endian. Calls with a type of another size panic.
    const DESCR: &'static str;
}

macro_rules! file_element {
    ($($t:ty, $descr:literal);*) => {$(
        impl FileElement for $t {
            const DESCR: &'static str = $descr;
        }
    )*};
}
file_element!(i8, "|i1"; u8, "|u1"; i16, "<i2"; u16, "<u2"; i32, "<i4"; u32, "<u4"; i64, "<i8"; u64, "<u8"; f32, "<f4"; f64, "<f8";
    Complex<f32>, "<c8"; Complex<f64>, "<c16");

/// What an element of a file is, and its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Signed(usize),
    Unsigned(usize),
    Float(usize),
    /// Two floats, of half of the bytes each.
    Complex(usize),
    /// Bytes that have a meaning for their program only.
    Opaque(usize),
}

impl Kind {
    pub(super) fn of<T: FileElement>() -> Kind {
        let kind = Kind::named(T::DESCR).map_or(Kind::Opaque(size_of::<T>()), |(kind, _)| kind);
        assert_eq!(kind.size(), size_of::<T>(), "`DESCR` {:?} has another size than the type", T::DESCR);
        kind
    }

    /// From NumPy's name, and whether the first byte of a number is the most significant one. As in NumPy, any byte order may stand before a type that
    /// has none, and the machine's own is '=', '|' or not said. Booleans are bytes.
    pub(super) fn named(descr: &str) -> Option<(Kind, bool)> {
        let name = descr.strip_prefix(['<', '>', '=', '|']).unwrap_or(descr);
        let bytes = name.get(1..)?.parse().ok()?;
        let kind = match (name.as_bytes().first()?, bytes) {
            (b'i', 1 | 2 | 4 | 8) => Kind::Signed(bytes),
            (b'u', 1 | 2 | 4 | 8) | (b'b', 1) => Kind::Unsigned(bytes),
            (b'f', 4 | 8) => Kind::Float(bytes),
            (b'c', 8 | 16) => Kind::Complex(bytes),
            (b'V', 1..) => Kind::Opaque(bytes),
            _ => return None,
        };
        let is_swapped = descr.starts_with('>') && kind.number() > 1;
        Some((kind, is_swapped))
    }

    /// Bytes of an element.
    pub(super) fn size(self) -> usize {
        match self {
            Kind::Signed(bytes) | Kind::Unsigned(bytes) | Kind::Float(bytes) | Kind::Complex(bytes) | Kind::Opaque(bytes) => {
                bytes
            }
        }
    }

    /// Bytes of a number that has an order of bytes.
    pub(super) fn number(self) -> usize {
        match self {
            Kind::Complex(bytes) => bytes / 2,
            Kind::Opaque(_) => 1,
            _ => self.size(),
        }
    }

    /// NumPy's name of the type, little-endian.
    pub(super) fn descr(self) -> String {
        let letter = match self {
            Kind::Signed(_) => 'i',
            Kind::Unsigned(_) => 'u',
            Kind::Float(_) => 'f',
            Kind::Complex(_) => 'c',
            Kind::Opaque(_) => 'V',
        };
        format!("{}{letter}{}", if self.number() == 1 { '|' } else { '<' }, self.size())
    }
}

impl Portable for Kind {
    fn write(&self, to: &mut dyn Write) -> io::Result<()> {
        self.descr().write(to)
    }

    fn read(from: &mut dyn Read) -> io::Result<Self> {
        let descr = String::read(from)?;
        Kind::named(&descr).map(|(kind, _)| kind).ok_or_else(|| io::Error::other(format!("no element type: {descr:?}")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_numpy() {
        for descr in ["|i1", "|u1", "<i2", "<u2", "<i4", "<u4", "<i8", "<u8", "<f4", "<f8", "<c8", "<c16", "|V24"] {
            let (kind, is_swapped) = Kind::named(descr).unwrap();
            assert_eq!((kind.descr().as_str(), is_swapped), (descr, false));
        }
        assert_eq!(Kind::of::<Complex<f64>>(), Kind::Complex(16));
        assert_eq!(Kind::named(">f8"), Some((Kind::Float(8), true)));
        for order in ["<", ">", "=", "|", ""] {
            assert_eq!(Kind::named(&format!("{order}u1")), Some((Kind::Unsigned(1), false)));
            assert_eq!(Kind::named(&format!("{order}V24")), Some((Kind::Opaque(24), false)));
        }
        for refused in ["", "<", "<f", "<f2", "<f16", "<<f8", "O", "|V0", "<U3", "é"] {
            assert_eq!(Kind::named(refused), None, "{refused}");
        }
    }
}
