//! LAPACK, in the library that `matmul` uses, by its Fortran interface: all arguments by address, 32-bit integers, the lengths of texts behind the
//! rest. A routine that the library lacks is an error.
//!
//! # Rows and columns
//! LAPACK knows matrices column by column, and members have theirs row by row. To it a square matrix a is therefore aᵀ, and no copy is made: the upper triangle
//! that it sees is the lower one, and what it calls U of aᵀ = Uᴴ U is L of a = L Lᴴ. Where the matrix is Hermitian, aᵀ is its conjugate, and so are eigenvectors
//! and solutions. A general one is factored as aᵀ, and solved transposed.
//!
//! # Source
//! E. Anderson et al.: *LAPACK Users' Guide*, third edition, SIAM 1999.
#![allow(unsafe_code)]

use std::{
    ffi::{CString, c_int, c_void},
    ptr,
};

use ndarray::{Array2, s};
use num_traits::{NumCast, Zero};

use super::{
    answer::{Failure, Spectrum, Values},
    field::{Field, real_of},
};
use crate::{
    array::blas::{Blas, library},
    error::{Error, MatrixError, Result},
};

/// Routines of a library.
pub(super) struct Lapack {
    blas: &'static Blas,
    operation: &'static str,
}

/// Workspaces of a routine, and their lengths; -1 asks it for them.
struct Space<T: Field> {
    work: Vec<T>,
    real: Values<T>,
    whole: Vec<c_int>,
    lens: [c_int; 3],
}

impl<T: Field> Space<T> {
    fn asked() -> Self {
        Space { work: vec![T::ZERO], real: vec![T::Real::zero()], whole: vec![0], lens: [-1; 3] }
    }
}

macro_rules! replace {
    ($of:expr => $by:ty) => {
        $by
    };
}

/// Calls a routine of LAPACK or BLAS for elements of type `T` and returns its `info`, which is its last argument but for BLAS.
macro_rules! call {
    ($lapack:expr, $name:expr, $($argument:expr),*; $($len:literal),*) => {{
        type Routine = unsafe extern "C" fn($(replace!($argument => *mut c_void),)* $(replace!($len => usize)),*);
        let routine = $lapack.routine::<Routine>($name)?;
        // SAFETY: the routine has these arguments in LAPACK, by the library's interface with 32-bit integers, others of which are refused when it
        // is loaded (`check_integers`). What it writes are the arguments that are made of `&mut`, which are as long as it asks; it keeps none.
        unsafe { routine($($argument),*, $($len),*) }
    }};
}

pub(super) fn conjugate<T: Field>(matrix: &mut Array2<T>) {
    if !T::IS_REAL {
        matrix.mapv_inplace(T::conj);
    }
}

/// What a routine reads.
fn of<T>(value: &T) -> *mut c_void {
    ptr::from_ref(value).cast_mut().cast()
}

/// What a routine writes.
fn out<T>(values: &mut [T]) -> *mut c_void {
    values.as_mut_ptr().cast()
}

/// A matrix that a routine reads.
fn read<T>(matrix: &Array2<T>) -> *mut c_void {
    matrix.as_ptr().cast_mut().cast()
}

/// A matrix that a routine writes.
fn memory<T>(matrix: &mut Array2<T>) -> *mut c_void {
    matrix.as_mut_ptr().cast()
}

impl Lapack {
    /// None if no library is used. One without LAPACK is none too where there is another way.
    pub(super) fn find(operation: &'static str) -> Result<Option<Self>> {
        let is_fit = |blas: &&Blas| cfg!(not(feature = "faer")) || blas.function::<*const c_void>(c"dpotrf_").is_some();
        let blas = library().map_err(|what| Error::argument(operation, what))?;
        let lapack = blas.filter(is_fit).map(|blas| Lapack { blas, operation });
        lapack.as_ref().map_or(Ok(()), Self::check_integers)?;
        Ok(lapack)
    }

    /// An error if the library's integers have 64 bits: then it writes all of an answer, not only the lower half.
    fn check_integers(&self) -> Result<()> {
        let (one, mut matrix, mut info) = (1_i64.to_le(), [1.0_f64], [-1_i64]);
        call!(self, "dpotrf".to_owned(), of(&b'U'), of(&one), out(&mut matrix), of(&one), out(&mut info); 1);
        match info {
            [0] => Err(Error::argument(
                self.operation,
                "the library of GA_BLAS has 64-bit integers; set GA_BLAS to one with 32-bit integers",
            )),
            _ => Ok(()),
        }
    }

    pub(super) fn on_cores<R: Send>(&self, cores: &[usize], work: impl FnOnce() -> R + Send) -> Result<R> {
        self.blas.on_cores(cores, work)
    }

    fn routine<F: Copy>(&self, name: String) -> Result<F> {
        let symbol = CString::new(name.clone() + "_").unwrap_or_default();
        self.blas.function(&symbol).ok_or_else(|| {
            let what = format!(
                "the BLAS that GA_BLAS names, or that was found, has no LAPACK ({name}), as BLIS; set GA_BLAS to an OpenBLAS, FlexiBLAS or MKL"
            );
            Error::argument(self.operation, what)
        })
    }

    fn int(&self, value: usize) -> Result<c_int> {
        let what = || Error::argument(self.operation, format_args!("{value} is beyond LAPACK's 32-bit integers"));
        c_int::try_from(value).map_err(|_| what())
    }

    /// The workspaces whose lengths a routine has put into the first elements.
    fn space<T: Field>(&self, asked: &Space<T>) -> Result<Space<T>> {
        let len = |asked: T::Real| {
            let asked: f64 = NumCast::from(asked).unwrap_or(f64::INFINITY);
            // Single precision rounds.
            (asked * (1.0 + 1e-6)).ceil().max(1.0) as usize
        };
        // Routines count the length in 32 bits, which may wrap round.
        let is_count = asked.work[0] == T::of_real(asked.work[0].magnitude()) && asked.real[0] >= T::Real::zero();
        if !is_count || asked.whole[0] < 0 {
            return Err(Error::argument(
                self.operation,
                "a workspace that LAPACK's 32-bit integers do not count: the matrix is too large",
            ));
        }
        let lens = [len(asked.work[0].magnitude()), len(asked.real[0]), asked.whole[0].max(1) as usize];
        let [work, real, whole] = lens;
        Ok(Space {
            work: vec![T::ZERO; work],
            real: vec![T::Real::zero(); real],
            whole: vec![0; whole],
            lens: [self.int(work)?, self.int(real)?, self.int(whole)?],
        })
    }

    /// The `info` of a routine: zero, or what is wrong with the matrix. It is negative for a wrong argument only.
    fn check(&self, info: c_int, wrong: impl FnOnce(usize) -> MatrixError) -> Result<(), Failure> {
        match usize::try_from(info) {
            Ok(0) => Ok(()),
            Ok(info) => Err(wrong(info).into()),
            Err(_) => Err(Error::argument(self.operation, format_args!("LAPACK refused argument {}", -info)).into()),
        }
    }

    /// Eigenvalues and eigenvectors, as columns, of h x = λ l lᴴ x, or of h x = λ x.
    pub(super) fn eigh<T: Field>(
        &self,
        mut h: Array2<T>,
        l: Option<&Array2<T>>,
        spectrum: Spectrum,
    ) -> Result<(Values<T>, Array2<T>), Failure> {
        /// Beyond this order the workspace of divide and conquer is too long for 32-bit integers.
        const MOST: usize = 32_000;
        if let Some(l) = l {
            self.reduce_by_cholesky(&mut h, l)?;
        }
        let (values, mut columns) = match spectrum {
            Spectrum::All if h.nrows() <= MOST => self.eigh_by_division(h)?,
            _ => self.eigh_by_representations(h, spectrum)?,
        };
        if let Some(l) = l {
            self.solve_upper(l, &mut columns)?;
        }
        conjugate(&mut columns);
        Ok((values, columns))
    }

    /// Eigenvalues, and the conjugates of eigenvectors as columns, by divide and conquer.
    fn eigh_by_division<T: Field>(&self, mut a: Array2<T>) -> Result<(Values<T>, Array2<T>), Failure> {
        let order = a.nrows();
        let n = self.int(order)?;
        let mut values = vec![T::Real::zero(); order];
        let (mut space, mut info) = (Space::<T>::asked(), [0]);
        for is_query in [true, false] {
            if T::IS_REAL {
                call!(self, format!("{}syevd", T::LETTER), of(&b'V'), of(&b'U'), of(&n), memory(&mut a), of(&n), out(&mut values), out(&mut space.work), of(&space.lens[0]), out(&mut space.whole), of(&space.lens[2]), out(&mut info); 1, 1);
            } else {
                call!(self, format!("{}heevd", T::LETTER), of(&b'V'), of(&b'U'), of(&n), memory(&mut a), of(&n), out(&mut values), out(&mut space.work), of(&space.lens[0]), out(&mut space.real), of(&space.lens[1]), out(&mut space.whole), of(&space.lens[2]), out(&mut info); 1, 1);
            }
            self.check(info[0], |info| MatrixError::NotConverged { info })?;
            if is_query {
                space = self.space(&space)?;
            }
        }
        // Column by column.
        Ok((values, a.reversed_axes()))
    }

    /// The same by relatively robust representations; for a part of the vectors bisection and inverse iteration, which is less work.
    fn eigh_by_representations<T: Field>(&self, mut a: Array2<T>, spectrum: Spectrum) -> Result<(Values<T>, Array2<T>), Failure> {
        let order = a.nrows();
        let n = self.int(order)?;
        let (range, columns, [low, high], last) = match spectrum {
            Spectrum::All => (b'A', order, [T::Real::zero(); 2], 0),
            Spectrum::Lowest(count) => (b'I', count.min(order), [T::Real::zero(); 2], self.int(count.min(order))?),
            Spectrum::Interval(low, high) => (b'V', order, [real_of::<T>(low), real_of::<T>(high)], 0),
        };
        let (tolerance, first) = (T::Real::zero(), 1);
        let (mut values, mut vectors) = (vec![T::Real::zero(); order], Array2::<T>::zeros((columns, order)).reversed_axes());
        let (mut found, mut support) = ([0], vec![0; 2 * order]);
        let (mut space, mut info) = (Space::<T>::asked(), [0]);
        for is_query in [true, false] {
            if T::IS_REAL {
                call!(self, format!("{}syevr", T::LETTER), of(&b'V'), of(&range), of(&b'U'), of(&n), memory(&mut a), of(&n), of(&low), of(&high), of(&first), of(&last), of(&tolerance), out(&mut found), out(&mut values), memory(&mut vectors), of(&n), out(&mut support), out(&mut space.work), of(&space.lens[0]), out(&mut space.whole), of(&space.lens[2]), out(&mut info); 1, 1, 1);
            } else {
                call!(self, format!("{}heevr", T::LETTER), of(&b'V'), of(&range), of(&b'U'), of(&n), memory(&mut a), of(&n), of(&low), of(&high), of(&first), of(&last), of(&tolerance), out(&mut found), out(&mut values), memory(&mut vectors), of(&n), out(&mut support), out(&mut space.work), of(&space.lens[0]), out(&mut space.real), of(&space.lens[1]), out(&mut space.whole), of(&space.lens[2]), out(&mut info); 1, 1, 1);
            }
            self.check(info[0], |info| MatrixError::NotConverged { info })?;
            if is_query {
                space = self.space(&space)?;
            }
        }
        let found = found[0] as usize;
        values.truncate(found);
        Ok((values, vectors.slice_move(s![.., ..found])))
    }

    /// Overwrites the lower triangle of `h` with that of L⁻¹ h L⁻ᴴ.
    fn reduce_by_cholesky<T: Field>(&self, h: &mut Array2<T>, l: &Array2<T>) -> Result<(), Failure> {
        let (n, kind, mut info) = (self.int(l.nrows())?, 1, [0]);
        let name = format!("{}{}gst", T::LETTER, if T::IS_REAL { "sy" } else { "he" });
        call!(self, name, of(&kind), of(&b'U'), of(&n), memory(h), of(&n.max(1)), read(l), of(&n.max(1)), out(&mut info); 1);
        self.check(info[0], |order| MatrixError::NotPositive { order })
    }

    /// Overwrites conjugates of vectors, column by column, with those of L⁻ᴴ times these.
    fn solve_upper<T: Field>(&self, l: &Array2<T>, b: &mut Array2<T>) -> Result<(), Failure> {
        let (n, columns) = (self.int(l.nrows())?, self.int(b.ncols())?);
        call!(self, format!("{}trsm", T::LETTER), of(&b'L'), of(&b'U'), of(&b'N'), of(&b'N'), of(&n), of(&columns), of(&T::ONE), read(l), of(&n.max(1)), memory(b), of(&n.max(1)); 1, 1, 1, 1);
        Ok(())
    }

    /// Overwrites the first rows of `b` with the x that minimizes ‖a x - b‖, for a matrix with at least as many rows as columns; both column by column.
    pub(super) fn least_squares<T: Field>(&self, a: &mut Array2<T>, b: &mut Array2<T>) -> Result<(), Failure> {
        let [rows, columns, right] = [self.int(a.nrows())?, self.int(a.ncols())?, self.int(b.ncols())?];
        let (mut space, mut info) = (Space::<T>::asked(), [0]);
        for is_query in [true, false] {
            call!(self, format!("{}gels", T::LETTER), of(&b'N'), of(&rows), of(&columns), of(&right), memory(a), of(&rows.max(1)), memory(b), of(&rows.max(1)), out(&mut space.work), of(&space.lens[0]), out(&mut info); 1);
            self.check(info[0], |at| MatrixError::Dependent { at: at - 1 })?;
            if is_query {
                space = self.space(&space)?;
            }
        }
        Ok(())
    }

    /// Of a matrix column by column: U and Vᴴ, with as many columns and rows as there are singular values, and these from the largest on.
    pub(super) fn svd<T: Field>(&self, mut a: Array2<T>) -> Result<([Array2<T>; 2], Values<T>), Failure> {
        /// Beyond it the routine's sums of lengths wrap round.
        const MOST: usize = 20_000;
        let (height, width) = a.dim();
        let few = height.min(width);
        if few > MOST {
            let what = format_args!("{height} x {width}: LAPACK's 32-bit integers suffice for a shorter axis of {MOST}");
            return Err(Error::argument(self.operation, what).into());
        }
        let [rows, columns, k] = [self.int(height)?, self.int(width)?, self.int(few)?];
        let mut values = vec![T::Real::zero(); few];
        let [mut u, mut vt] = [(few, height), (width, few)].map(|shape| Array2::<T>::zeros(shape).reversed_axes());
        // More than any version of the routine for complex numbers asks.
        let mut real =
            vec![T::Real::zero(); if T::IS_REAL { 1 } else { few * (5 * few + 7).max(2 * height.max(width) + 2 * few + 1) }];
        let (mut space, mut whole, mut info) = (Space::<T>::asked(), vec![0; 8 * few], [0]);
        for is_query in [true, false] {
            let name = format!("{}gesdd", T::LETTER);
            if T::IS_REAL {
                call!(self, name, of(&b'S'), of(&rows), of(&columns), memory(&mut a), of(&rows.max(1)), out(&mut values), memory(&mut u), of(&rows.max(1)), memory(&mut vt), of(&k.max(1)), out(&mut space.work), of(&space.lens[0]), out(&mut whole), out(&mut info); 1);
            } else {
                call!(self, name, of(&b'S'), of(&rows), of(&columns), memory(&mut a), of(&rows.max(1)), out(&mut values), memory(&mut u), of(&rows.max(1)), memory(&mut vt), of(&k.max(1)), out(&mut space.work), of(&space.lens[0]), out(&mut real), out(&mut whole), out(&mut info); 1);
            }
            self.check(info[0], |info| MatrixError::NotConverged { info })?;
            if is_query {
                space = self.space(&space)?;
            }
        }
        Ok(([u, vt], values))
    }
}
