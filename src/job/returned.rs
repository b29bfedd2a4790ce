//! What [`run`](crate::run) returns: the value of rank 0's body.
//!
//! Rank 0 writes the value into a file of memory without a name, which the process that calls `run` makes before there are ranks. The
//! caller reads it when all ranks have ended well. Where the ranks themselves call `run`, because a launcher started them, each has such a
//! file, and rank 0 broadcasts. A value without contents takes no file and no message.

use std::{
    fs::File,
    io::{self, BufReader, BufWriter, Read, Seek, Write},
    marker::PhantomData,
    process,
};

use ndarray::{Array, Dimension};
use num_complex::Complex;
use rustix::fs::{MemfdFlags, memfd_create};

use super::{Job, entry::Extent};
use crate::{
    comm::start::settings::Settings,
    error::{Error, Result},
    memory::{large_pages, limits::check_file},
};

/// What the body of [`run`](crate::run) may return: `()`, numbers, `bool`, `char`, `String`, and arrays, vectors, ndarray's arrays,
/// options and tuples of these. The value of rank 0 crosses to the process that called `run`.
///
/// A struct of your own joins by an `impl` that writes its fields and reads them in the same order.
///
/// # Examples
/// ```
/// use std::io::{Read, Result, Write};
///
/// use global_arrays::{Returned, prelude::*};
///
/// struct Summary {
///     energy: f64,
///     history: Vec<f64>,
/// }
///
/// impl Returned for Summary {
///     fn write(&self, to: &mut dyn Write) -> Result<()> {
///         self.energy.write(to)?;
///         self.history.write(to)
///     }
///
///     fn read(from: &mut dyn Read) -> Result<Self> {
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
///     let summary = Launch::new().ranks(2).run(simulate)?;
///     assert_eq!((summary.energy, summary.history), (1.0, vec![1.0; 3]));
///     Ok(())
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "the body of `run` cannot return `{Self}`",
    label = "not `Returned`",
    note = "numbers, strings, and arrays, vectors, options and tuples of these can be returned; for a struct of your own implement `Returned`",
    note = "a view or a global array belongs to the job: return what was read of it"
)]
pub trait Returned: Sized {
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
        impl Returned for $t {
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
                let mut values = bytemuck::zeroed_vec(count);
                large_pages::wish(&mut values);
                from.read_exact(bytemuck::cast_slice_mut(&mut values))?;
                Ok(values)
            }
        }
    )*};
}
numbers!(i8, u8, i16, u16, i32, u32, i64, u64, i128, u128, isize, usize, f32, f64, Complex<f32>, Complex<f64>);

impl Returned for bool {
    fn write(&self, to: &mut dyn Write) -> io::Result<()> {
        u8::from(*self).write(to)
    }
    fn read(from: &mut dyn Read) -> io::Result<Self> {
        Ok(u8::read(from)? != 0)
    }
}

impl Returned for char {
    fn write(&self, to: &mut dyn Write) -> io::Result<()> {
        u32::from(*self).write(to)
    }
    fn read(from: &mut dyn Read) -> io::Result<Self> {
        char::try_from(u32::read(from)?).map_err(io::Error::other)
    }
}

impl Returned for String {
    fn write(&self, to: &mut dyn Write) -> io::Result<()> {
        self.len().write(to)?;
        to.write_all(self.as_bytes())
    }
    fn read(from: &mut dyn Read) -> io::Result<Self> {
        String::from_utf8(Vec::read(from)?).map_err(io::Error::other)
    }
}

impl<T: Returned> Returned for Vec<T> {
    fn write(&self, to: &mut dyn Write) -> io::Result<()> {
        self.len().write(to)?;
        T::write_all(self, to)
    }
    fn read(from: &mut dyn Read) -> io::Result<Self> {
        let count = usize::read(from)?;
        T::read_all(count, from)
    }
}

impl<T: Returned, const N: usize> Returned for [T; N] {
    fn write(&self, to: &mut dyn Write) -> io::Result<()> {
        T::write_all(self, to)
    }
    fn read(from: &mut dyn Read) -> io::Result<Self> {
        T::read_all(N, from)?.try_into().map_err(|_| io::Error::other("too few values"))
    }
    fn write_all(values: &[Self], to: &mut dyn Write) -> io::Result<()> {
        T::write_all(values.as_flattened(), to)
    }
}

impl<T: Returned + Clone, D: Dimension> Returned for Array<T, D> {
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

impl<T: Returned> Returned for Option<T> {
    fn write(&self, to: &mut dyn Write) -> io::Result<()> {
        self.is_some().write(to)?;
        self.iter().try_for_each(|value| value.write(to))
    }
    fn read(from: &mut dyn Read) -> io::Result<Self> {
        bool::read(from)?.then(|| T::read(from)).transpose()
    }
}

impl Returned for () {
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
        impl<$($t: Returned),*> Returned for ($($t,)*) {
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
tuples!(A 0);
tuples!(A 0, B 1);
tuples!(A 0, B 1, C 2);
tuples!(A 0, B 1, C 2, E 3);
tuples!(A 0, B 1, C 2, E 3, F 4);
tuples!(A 0, B 1, C 2, E 3, F 4, G 5);

/// Where the value of a job goes that runs a body.
#[derive(Debug)]
pub(super) struct Outcome<R> {
    /// None for a value without contents.
    file: Option<File>,
    /// The process that called `run`, if ranks are processes.
    caller: Option<u32>,
    value: PhantomData<fn() -> R>,
}

impl<R: Returned> Outcome<R> {
    pub(super) fn new(extent: Extent, settings: &Settings) -> Result<Self> {
        let large = || if settings.large_pages { large_pages::file() } else { None };
        let new = || large().map_or_else(|| memfd_create("global-arrays-value", MemfdFlags::CLOEXEC), Ok);
        let file = if R::IS_EMPTY { None } else { Some(File::from(new().map_err(|error| failed(error.into()))?)) };
        let caller = (extent == Extent::Process).then(process::id);
        Ok(Outcome { file, caller, value: PhantomData })
    }

    /// Keeps what the body of a rank returned. The job is over then, but for what a launcher's ranks do here together.
    pub(super) fn keep(&self, job: &Job, value: &R) -> Result<()> {
        let Some(file) = &self.file else { return Ok(()) };
        if job.rank() == 0 {
            let mut writer = BufWriter::new(Checked { file, written: 0 });
            value.write(&mut writer).and_then(|()| writer.flush()).map_err(failed)?;
        }
        // Otherwise this rank is not the caller.
        if self.caller == Some(process::id()) { self.spread(job, file) } else { Ok(()) }
    }

    /// From rank 0's file to the others'.
    fn spread(&self, job: &Job, file: &File) -> Result<()> {
        const STEP: usize = 1 << 20;
        let mut file = file;
        let is_first = job.rank() == 0;
        let mut len = [if is_first { file.stream_position().map_err(failed)? as usize } else { 0 }];
        job.broadcast(0, &mut len)?;
        file.rewind().map_err(failed)?;
        let mut buffer = vec![0_u8; STEP.min(len[0])];
        for at in (0..len[0]).step_by(STEP) {
            let bytes = &mut buffer[..STEP.min(len[0] - at)];
            if is_first {
                file.read_exact(bytes).map_err(failed)?;
            }
            job.broadcast(0, bytes)?;
            if !is_first {
                Checked { file, written: at }.write_all(bytes).map_err(failed)?;
            }
        }
        job.sync()
    }

    /// The value, once all ranks have ended well.
    pub(super) fn take(self) -> Result<R> {
        let Some(mut file) = self.file else { return R::read(&mut io::empty()).map_err(failed) };
        file.rewind().and_then(|()| R::read(&mut BufReader::new(file))).map_err(failed)
    }
}

/// A file that tells of a limit of its length before the kernel ends the process for it.
struct Checked<'f> {
    file: &'f File,
    written: usize,
}

impl Write for Checked<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        check_file((self.written + bytes.len()) as u64)?;
        let written = self.file.write(bytes)?;
        self.written += written;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cold]
fn failed(error: io::Error) -> Error {
    Error::system("handing over what the body of rank 0 returned", error)
}

#[cfg(test)]
mod tests {
    use ndarray::{Array2, ArrayD, IxDyn, array};

    use super::*;

    fn crosses<R: Returned + PartialEq + std::fmt::Debug>(value: R) {
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
    fn values_are_read_as_they_were_written() {
        crosses(());
        crosses((1_i8, u128::MAX, -0.0_f64, Complex::new(1.0_f32, -2.0), true, 'ß'));
        crosses((String::from("αβ"), String::new()));
        crosses((vec![0.5_f64; 3], Vec::<i32>::new(), vec![[1_u16, 2], [3, 4]]));
        crosses((vec![String::from("a"), String::new()], vec![vec![1_usize], vec![]]));
        crosses((Some(vec![Some(false), None]), None::<f64>));
        crosses((array![[1.0, 2.0], [3.0, 4.0]], Array2::<u8>::zeros((0, 3))));
        crosses(array![[1, 2], [3, 4], [5, 6]].reversed_axes());
        crosses((ArrayD::<f32>::ones(IxDyn(&[2, 1, 3])), ArrayD::<f32>::ones(IxDyn(&[]))));
    }
}
