//! Values that cross between ranks, whatever their length: what [`run`](crate::run) returns, and what one member has for all.

use std::{
    ffi::OsString,
    io::{self, Read, Write},
    os::unix::ffi::{OsStrExt, OsStringExt},
    path::PathBuf,
};

use ndarray::{Array, Dimension};
use num_complex::Complex;

use crate::memory::large_pages;

/// Reads a value that is all there is.
pub(crate) fn read_whole<R: Portable>(mut from: impl Read) -> io::Result<R> {
    let value = R::read(&mut from)?;
    match from.read(&mut [0])? {
        0 => Ok(value),
        _ => Err(io::Error::other(format!("the `Portable` of {} reads less than it writes", std::any::type_name::<R>()))),
    }
}

/// A value that crosses from one rank to others, or to the process that called [`run`](crate::run): `()`, numbers, `bool`, `char`,
/// `String`, `PathBuf`, and arrays, vectors, ndarray's arrays, options and tuples of these.
///
/// A struct of your own joins by an `impl` that writes its fields and reads them in the same order.
///
/// # Examples
/// ```
/// use std::io::{self, Read, Write};
///
/// use global_arrays::prelude::*;
///
/// struct Summary {
///     energy: f64,
///     history: Vec<f64>,
/// }
///
/// impl Portable for Summary {
///     fn write(&self, to: &mut dyn Write) -> io::Result<()> {
///         self.energy.write(to)?;
///         self.history.write(to)
///     }
///
///     fn read(from: &mut dyn Read) -> io::Result<Self> {
///         Ok(Summary { energy: f64::read(from)?, history: Vec::read(from)? })
///     }
/// }
///
/// fn simulate(job: &Job) -> Result<Summary, Error> {
///     let energy = job.all_reduce_one(0.5, ops::sum)?;
///     Ok(Summary { energy, history: vec![energy; 3] })
/// }
///
/// fn main() -> Result<(), Error> {
///     let summary = Launch::new().ranks(2).network("threads").run(simulate)?;
///     assert_eq!((summary.energy, summary.history), (1.0, vec![1.0; 3]));
///     Ok(())
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot cross between ranks",
    label = "not `Portable`",
    note = "numbers, strings, and arrays, vectors, options and tuples of these can; for a struct of your own implement `Portable`",
    note = "views and global arrays belong to their job: read an array with `get` and return that"
)]
pub trait Portable: Sized {
    /// There is nothing to write.
    #[doc(hidden)]
    const IS_EMPTY: bool = false;

    /// Writes the value.
    ///
    /// # Errors
    /// Those of the writer.
    fn write(&self, to: &mut dyn Write) -> io::Result<()>;

    /// Reads what [`write`](Self::write) wrote.
    ///
    /// # Errors
    /// Those of the reader.
    fn read(from: &mut dyn Read) -> io::Result<Self>;

    /// Writes several values, one after the other.
    #[doc(hidden)]
    fn write_all(values: &[Self], to: &mut dyn Write) -> io::Result<()> {
        values.iter().try_for_each(|value| value.write(to))
    }

    /// Reads so many values.
    #[doc(hidden)]
    fn read_all(count: usize, from: &mut dyn Read) -> io::Result<Vec<Self>> {
        (0..count).map(|_| Self::read(from)).collect()
    }
}

macro_rules! numbers {
    ($($t:ty),*) => {$(
        impl Portable for $t {
            fn write(&self, to: &mut dyn Write) -> io::Result<()> {
                to.write_all(bytemuck::bytes_of(self))
            }
            fn read(from: &mut dyn Read) -> io::Result<Self> {
                let mut value = <$t as bytemuck::Zeroable>::zeroed();
                from.read_exact(bytemuck::bytes_of_mut(&mut value))?;
                Ok(value)
            }
            fn write_all(values: &[Self], to: &mut dyn Write) -> io::Result<()> {
                to.write_all(bytemuck::cast_slice(values))
            }
            fn read_all(count: usize, from: &mut dyn Read) -> io::Result<Vec<Self>> {
                let too_many = |()| io::Error::other(format!("{count} values are more than memory holds"));
                let mut values = bytemuck::try_zeroed_vec(count).map_err(too_many)?;
                large_pages::wish(&mut values);
                from.read_exact(bytemuck::cast_slice_mut(&mut values))?;
                Ok(values)
            }
        }
    )*};
}
numbers!(i8, u8, i16, u16, i32, u32, i64, u64, i128, u128, isize, usize, f32, f64, Complex<f32>, Complex<f64>);

impl Portable for bool {
    fn write(&self, to: &mut dyn Write) -> io::Result<()> {
        u8::from(*self).write(to)
    }
    fn read(from: &mut dyn Read) -> io::Result<Self> {
        Ok(u8::read(from)? != 0)
    }
}

impl Portable for char {
    fn write(&self, to: &mut dyn Write) -> io::Result<()> {
        u32::from(*self).write(to)
    }
    fn read(from: &mut dyn Read) -> io::Result<Self> {
        char::try_from(u32::read(from)?).map_err(io::Error::other)
    }
}

impl Portable for String {
    fn write(&self, to: &mut dyn Write) -> io::Result<()> {
        self.len().write(to)?;
        to.write_all(self.as_bytes())
    }
    fn read(from: &mut dyn Read) -> io::Result<Self> {
        String::from_utf8(Vec::read(from)?).map_err(io::Error::other)
    }
}

/// Its bytes, which need not be a text.
impl Portable for PathBuf {
    fn write(&self, to: &mut dyn Write) -> io::Result<()> {
        self.as_os_str().len().write(to)?;
        to.write_all(self.as_os_str().as_bytes())
    }
    fn read(from: &mut dyn Read) -> io::Result<Self> {
        Ok(OsString::from_vec(Vec::read(from)?).into())
    }
}

impl<T: Portable> Portable for Vec<T> {
    fn write(&self, to: &mut dyn Write) -> io::Result<()> {
        self.len().write(to)?;
        T::write_all(self, to)
    }
    fn read(from: &mut dyn Read) -> io::Result<Self> {
        let count = usize::read(from)?;
        T::read_all(count, from)
    }
}

impl<T: Portable, const N: usize> Portable for [T; N] {
    fn write(&self, to: &mut dyn Write) -> io::Result<()> {
        T::write_all(self, to)
    }
    fn read(from: &mut dyn Read) -> io::Result<Self> {
        T::read_all(N, from)?.try_into().map_err(|_| io::Error::other("too few values"))
    }
    fn write_all(values: &[Self], to: &mut dyn Write) -> io::Result<()> {
        T::write_all(values.as_flattened(), to)
    }
    fn read_all(count: usize, from: &mut dyn Read) -> io::Result<Vec<Self>> {
        let all = count.checked_mul(N).ok_or_else(|| io::Error::other("more values than can be counted"))?;
        let mut values = T::read_all(all, from)?.into_iter();
        Ok((0..count).map(|_| std::array::from_fn(|_| values.next().expect("as many as were read"))).collect())
    }
}

impl<T: Portable + Clone, D: Dimension> Portable for Array<T, D> {
    fn write(&self, to: &mut dyn Write) -> io::Result<()> {
        self.shape().to_vec().write(to)?;
        match self.as_slice() {
            Some(values) => T::write_all(values, to),
            None => self.iter().try_for_each(|value| value.write(to)),
        }
    }
    fn read(from: &mut dyn Read) -> io::Result<Self> {
        let extents = Vec::<usize>::read(from)?;
        if D::NDIM.is_some_and(|axes| axes != extents.len()) {
            return Err(io::Error::other("another number of axes"));
        }
        let mut shape = D::zeros(extents.len());
        shape.slice_mut().copy_from_slice(&extents);
        let count = shape.size();
        Array::from_shape_vec(shape, T::read_all(count, from)?).map_err(io::Error::other)
    }
}

impl<T: Portable> Portable for Option<T> {
    fn write(&self, to: &mut dyn Write) -> io::Result<()> {
        self.is_some().write(to)?;
        self.iter().try_for_each(|value| value.write(to))
    }
    fn read(from: &mut dyn Read) -> io::Result<Self> {
        bool::read(from)?.then(|| T::read(from)).transpose()
    }
}

impl Portable for () {
    const IS_EMPTY: bool = true;
    fn write(&self, _: &mut dyn Write) -> io::Result<()> {
        Ok(())
    }
    fn read(_: &mut dyn Read) -> io::Result<Self> {
        Ok(())
    }
}

macro_rules! tuples {
    ($($t:ident $k:tt),*) => {
        impl<$($t: Portable),*> Portable for ($($t,)*) {
            const IS_EMPTY: bool = $($t::IS_EMPTY)&&*;
            fn write(&self, to: &mut dyn Write) -> io::Result<()> {
                $(self.$k.write(to)?;)*
                Ok(())
            }
            fn read(from: &mut dyn Read) -> io::Result<Self> {
                Ok(($($t::read(from)?,)*))
            }
        }
    };
}
/// A struct crosses by its fields, one after the other.
macro_rules! portable {
    ($of:ident { $($field:ident),* }) => {
        impl $crate::portable::Portable for $of {
            fn write(&self, to: &mut dyn ::std::io::Write) -> ::std::io::Result<()> {
                $($crate::portable::Portable::write(&self.$field, to)?;)*
                Ok(())
            }
            fn read(from: &mut dyn ::std::io::Read) -> ::std::io::Result<Self> {
                Ok($of { $($field: $crate::portable::Portable::read(from)?),* })
            }
        }
    };
}
pub(crate) use portable;

tuples!(A 0);
tuples!(A 0, B 1);
tuples!(A 0, B 1, C 2);
tuples!(A 0, B 1, C 2, E 3);
tuples!(A 0, B 1, C 2, E 3, F 4);
tuples!(A 0, B 1, C 2, E 3, F 4, G 5);

#[cfg(test)]
mod tests {
    use ndarray::{Array2, ArrayD, IxDyn, array};

    use super::*;

    fn crosses<R: Portable + PartialEq + std::fmt::Debug>(value: R) {
        let mut bytes = Vec::new();
        value.write(&mut bytes).unwrap();
        let mut rest = &bytes[..];
        assert_eq!(R::read(&mut rest).unwrap(), value);
        assert!(rest.is_empty(), "{value:?} leaves {} bytes", rest.len());
        if !bytes.is_empty() {
            assert!(R::read(&mut &bytes[..bytes.len() - 1]).is_err(), "{value:?} without its last byte");
        }
    }

    #[test]
    fn what_does_not_fit_is_an_error() {
        let mut bytes = Vec::new();
        (-1_i64, 0.5).write(&mut bytes).unwrap();
        let error = read_whole::<Vec<f64>>(&bytes[..]).unwrap_err().to_string();
        assert!(error.contains("18446744073709551615 values"), "{error}");
        assert!(read_whole::<Vec<[f64; 3]>>(&bytes[..]).is_err() && read_whole::<String>(&bytes[..]).is_err());
        let error = read_whole::<i64>(&bytes[..]).unwrap_err().to_string();
        assert!(error.contains("reads less than it writes"), "{error}");
    }

    #[test]
    fn values_are_read_as_they_were_written() {
        crosses(());
        crosses((1_i8, u128::MAX, -0.0_f64, Complex::new(1.0_f32, -2.0), true, 'ß'));
        crosses((String::from("αβ"), String::new(), PathBuf::from(OsString::from_vec(vec![b'/', 0xff]))));
        crosses((vec![0.5_f64; 3], Vec::<i32>::new(), vec![[1_u16, 2], [3, 4]]));
        crosses((vec![String::from("a"), String::new()], vec![vec![1_usize], vec![]]));
        crosses((Some(vec![Some(false), None]), None::<f64>));
        crosses((array![[1.0, 2.0], [3.0, 4.0]], Array2::<u8>::zeros((0, 3))));
        crosses(array![[1, 2], [3, 4], [5, 6]].reversed_axes());
        crosses((ArrayD::<f32>::ones(IxDyn(&[2, 1, 3])), ArrayD::<f32>::ones(IxDyn(&[]))));
    }
}
