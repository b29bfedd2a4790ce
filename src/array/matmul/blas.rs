//! The local product by a BLAS of the system, with the C interface CBLAS.
//!
//! The library is the one of `GA_BLAS` (`guide::environment`), or else the first of [`KNOWN`] that can be used. It is loaded at the first
//! product of a rank, so a process that forks ranks has neither a library nor its threads.
//!
//! # Threads
//!
//! The ranks of a node share its cores, so a BLAS gets one thread in each rank, unless the user chose a number ([`CHOICES`]). OpenBLAS
//! starts one for each core that the loading thread may use, and a process with other threads has no search for deadlocks. So the loading
//! thread may use one core only.
//!
//! # What CBLAS can describe
//!
//! A matrix with unit stride along one axis and a positive stride, not less than the length of its lines, along the other; lengths and
//! strides are 32-bit integers. Other views, and products without a sum, go to the crate's own kernel.
//!
//! # Source
//! BLAS Technical Forum: Basic Linear Algebra Subprograms Technical Standard, appendix B (the C interface), 2001.
#![allow(unsafe_code)]

use std::{
    env,
    ffi::{CStr, OsStr, OsString, c_char, c_int, c_void},
    fmt,
    mem::ManuallyDrop,
    panic::resume_unwind,
    ptr,
    sync::{Mutex, OnceLock, PoisonError},
    thread,
};

use libloading::Library;
use ndarray::{ArrayView2, ArrayViewMut2};
use num_complex::Complex;

use super::{NONE, VARIABLE, dense::Packable, views};
use crate::{comm::kit::cores, error::Error};

/// Libraries with 32-bit integers, from the most specific to a machine to the most common. `libcblas` and `libblas` are not among them:
/// they may be the reference BLAS, which is many times slower than the crate's own kernel.
const KNOWN: [&str; 7] = [
    "libmkl_rt.so.3",
    "libmkl_rt.so.2",
    "libmkl_rt.so.1",
    "libblis.so.5",
    "libblis.so.4",
    "libflexiblas.so.3",
    "libopenblas.so.0",
];

/// Variables by which a user chooses how many threads a BLAS has.
const CHOICES: [&str; 4] = ["OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS", "OMP_NUM_THREADS"];

/// What all libraries name alike.
const ROW_MAJOR: c_int = 101;
const COLUMN_MAJOR: c_int = 102;
const AS_IT_IS: c_int = 111;
const TRANSPOSED: c_int = 112;

/// Order, op(A), op(B), m, n, k, alpha, A and its leading dimension, B and its, beta, C and its.
type Gemm<S, T> =
    unsafe extern "C" fn(c_int, c_int, c_int, c_int, c_int, c_int, S, *const T, c_int, *const T, c_int, S, *mut T, c_int);

/// The functions of a library that is never unloaded.
pub(crate) struct Blas {
    library: ManuallyDrop<Library>,
    s: Gemm<f32, f32>,
    d: Gemm<f64, f64>,
    c: Gemm<*const c_void, c_void>,
    z: Gemm<*const c_void, c_void>,
    /// Held during a product by a library that knows of no threads, and may keep the memory of its calls in one place.
    turn: Option<Mutex<()>>,
}

impl fmt::Debug for Blas {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Blas").field("turn", &self.turn).finish_non_exhaustive()
    }
}

/// The library of this process, if there is one.
///
/// # Errors
/// What is wrong with the one that the user chose.
pub(crate) fn library() -> Result<Option<&'static Blas>, &'static str> {
    static LIBRARY: OnceLock<Result<Option<Blas>, String>> = OnceLock::new();
    LIBRARY.get_or_init(|| choose(env::var_os(VARIABLE))).as_ref().map(Option::as_ref).map_err(String::as_str)
}

fn choose(chosen: Option<OsString>) -> Result<Option<Blas>, String> {
    let Some(name) = chosen.filter(|name| !name.is_empty()) else {
        return Ok(KNOWN.iter().find_map(|name| load(OsStr::new(name)).ok()));
    };
    if name == NONE {
        return Ok(None);
    }
    load(&name).map(Some).map_err(|cause| {
        format!(
            "{VARIABLE}={name:?} cannot be used: {cause}; set it to the path or the name of a library with cblas_sgemm, cblas_dgemm, \
             cblas_cgemm, cblas_zgemm and 32-bit integers, or to \"{NONE}\" for the crate's own kernel, or unset it"
        )
    })
}

/// Loads a library, by name or path, and prepares it.
fn load(name: &OsStr) -> Result<Blas, String> {
    let one_thread = !is_number_chosen();
    let opened = {
        let _one_core = one_thread.then(OneCore::enter);
        // SAFETY: a library that is known, or that the user says is a BLAS, may start in any thread at any time. It is never unloaded.
        unsafe { Library::new(name) }
    };
    // What it has started may run until the process ends.
    let library = ManuallyDrop::new(opened.map_err(|error| error.to_string())?);
    // Before anything else: MKL would take the length of its integers from the environment.
    if let Some(set) = symbol::<unsafe extern "C" fn(c_int) -> c_int>(&library, c"MKL_Set_Interface_Layer") {
        const LP64: c_int = 0;
        // SAFETY: the function has this type in MKL, and knows this number.
        unsafe { set(LP64) };
    }
    if has_long_integers(&library) {
        return Err("its integers have 64 bits".into());
    }
    if one_thread {
        set_threads(&library, 1);
    }
    Ok(Blas {
        s: needed(&library, c"cblas_sgemm")?,
        d: needed(&library, c"cblas_dgemm")?,
        c: needed(&library, c"cblas_cgemm")?,
        z: needed(&library, c"cblas_zgemm")?,
        turn: has_no_threads(&library).then(Mutex::default),
        library,
    })
}

/// Whether the user chose how many threads a BLAS has.
fn is_number_chosen() -> bool {
    CHOICES.iter().any(|choice| env::var_os(choice).is_some_and(|value| !value.is_empty()))
}

impl Blas {
    /// A function of the library, if it is there. `F` is the type of a pointer to it.
    pub(crate) fn function<F: Copy>(&self, name: &CStr) -> Option<F> {
        symbol(&self.library, name)
    }

    /// Calls `work` while the library may use these cores, by a thread for each, unless the user chose how many it has. One such call at a time in a
    /// process: the number of threads is one for all of it.
    ///
    /// By a thread with a stack that is long enough: OpenBLAS puts tables for all threads that it could have on it, 2 MiB for 128.
    pub(crate) fn on_cores<R: Send>(&self, cores: &[usize], work: impl FnOnce() -> R + Send) -> Result<R, Error> {
        const STACK: usize = 64 << 20;
        static TURN: Mutex<()> = Mutex::new(());
        let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        let _alone = self.turn.as_ref().map(|turn| turn.lock().unwrap_or_else(PoisonError::into_inner));
        let confined = || {
            // A refusal costs threads only.
            let _ = cores::confine(cores);
            let _threads = (!is_number_chosen()).then(|| Threads::set(&self.library, cores.len().max(1)));
            work()
        };
        thread::scope(|scope| {
            let worker = thread::Builder::new().stack_size(STACK).spawn_scoped(scope, confined);
            let done = worker.map_err(|error| Error::system("starting a thread for LAPACK", error))?.join();
            done.or_else(|panic| resume_unwind(panic))
        })
    }
}

/// The threads of a library, one again when this is dropped.
struct Threads<'a>(&'a Library);

impl<'a> Threads<'a> {
    fn set(library: &'a Library, number: usize) -> Self {
        set_threads(library, number);
        Threads(library)
    }
}

impl Drop for Threads<'_> {
    fn drop(&mut self) {
        set_threads(self.0, 1);
    }
}

/// A function of a library, if it is there. `F` is the type of a pointer to it; to call it as something else is for the caller to avoid.
fn symbol<F: Copy>(library: &Library, name: &CStr) -> Option<F> {
    // SAFETY: nothing is done with the address but to keep it, and the library stays.
    unsafe { library.get::<F>(name.to_bytes_with_nul()) }.ok().map(|function| *function)
}

fn needed<F: Copy>(library: &Library, name: &CStr) -> Result<F, String> {
    symbol(library, name).ok_or_else(|| format!("it has no {}", name.to_string_lossy()))
}

/// Whether the library says that its integers have 64 bits: then arguments would be read beyond what is passed.
fn has_long_integers(library: &Library) -> bool {
    const LONG: &[u8] = b"USE64BITINT";
    let open_blas = symbol::<unsafe extern "C" fn() -> *const c_char>(library, c"openblas_get_config").is_some_and(|get| {
        // SAFETY: the function has this type in OpenBLAS.
        let text = unsafe { get() };
        // SAFETY: it returns a string that stays.
        !text.is_null() && unsafe { CStr::from_ptr(text) }.to_bytes().windows(LONG.len()).any(|word| word == LONG)
    });
    let blis = symbol::<unsafe extern "C" fn() -> i64>(library, c"bli_info_get_blas_int_type_size")
        // SAFETY: the function has this type in BLIS.
        .is_some_and(|get| unsafe { get() } == 64);
    open_blas || blis
}

/// Whether the library is an OpenBLAS without threads: built so, it may keep the memory of its calls in one place.
fn has_no_threads(library: &Library) -> bool {
    symbol::<unsafe extern "C" fn() -> c_int>(library, c"openblas_get_parallel")
        // SAFETY: the function has this type in OpenBLAS.
        .is_some_and(|get| unsafe { get() } == 0)
}

fn set_threads(library: &Library, number: usize) {
    for name in [c"openblas_set_num_threads", c"MKL_Set_Num_Threads", c"flexiblas_set_num_threads"] {
        if let Some(set) = symbol::<unsafe extern "C" fn(c_int)>(library, name) {
            // SAFETY: the function has this type in the library that has the name, and takes any positive number.
            unsafe { set(number as c_int) };
        }
    }
    if let Some(set) = symbol::<unsafe extern "C" fn(i64)>(library, c"bli_thread_set_num_threads") {
        // SAFETY: the function has this type in BLIS, and takes any positive number.
        unsafe { set(number as i64) };
    }
}

/// While it lives, this thread may use one core only. A refusal costs threads only.
struct OneCore(Vec<usize>);

impl OneCore {
    fn enter() -> Self {
        let all = cores::allowed(None).unwrap_or_default();
        let _ = cores::confine(&all[..all.len().min(1)]);
        OneCore(all)
    }
}

impl Drop for OneCore {
    fn drop(&mut self) {
        let _ = cores::confine(&self.0);
    }
}

/// `c = alpha * a * b + beta * c` by the library. If there is none, or it cannot describe the views, `c` is returned as it was.
///
/// # Panics
/// If the shapes do not go together, or the library that the user chose cannot be used.
pub(super) fn multiply<'c, T: Local>(
    mut c: ArrayViewMut2<'c, T>,
    alpha: T,
    a: &ArrayView2<'_, T>,
    b: &ArrayView2<'_, T>,
    beta: T,
) -> Option<ArrayViewMut2<'c, T>> {
    views::check(&c, a, b);
    let blas = match library() {
        Ok(Some(blas)) => blas,
        Ok(None) => return Some(c),
        Err(what) => panic!("{what}"),
    };
    let call = Call::of(Place::of(&c.view()), Place::of(a), Place::of(b));
    let Some(call) = call.filter(|_| alpha != T::ZERO) else { return Some(c) };
    let _turn = blas.turn.as_ref().map(|turn| turn.lock().unwrap_or_else(PoisonError::into_inner));
    // SAFETY: the call describes the three views, whose shapes go together and whose elements are valid while they are borrowed; those
    // of C for writes, and no other view has any of them.
    unsafe { T::gemm(blas, &call, alpha, a.as_ptr(), b.as_ptr(), beta, c.as_mut_ptr()) };
    None
}

/// Shape and strides of a view.
#[derive(Clone, Copy)]
struct Place {
    shape: [usize; 2],
    strides: [isize; 2],
}

impl Place {
    fn of<T>(view: &ArrayView2<'_, T>) -> Self {
        Place { shape: view.dim().into(), strides: [view.strides()[0], view.strides()[1]] }
    }

    fn transposed(self) -> Self {
        let ([rows, columns], [by_row, by_column]) = (self.shape, self.strides);
        Place { shape: [columns, rows], strides: [by_column, by_row] }
    }

    /// Elements from one row to the next, if the rows are contiguous and do not overlap.
    fn leading(self) -> Option<c_int> {
        let ([rows, columns], [by_row, by_column]) = (self.shape, self.strides);
        let leading = if rows > 1 { usize::try_from(by_row).ok()? } else { columns };
        if (columns > 1 && by_column != 1) || leading < columns {
            return None;
        }
        c_int::try_from(leading).ok()
    }
}

/// The arguments of a CBLAS call that describe the three matrices.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Call {
    order: c_int,
    /// op(A), op(B).
    op: [c_int; 2],
    /// m, n, k.
    extents: [c_int; 3],
    /// Of A, B and C.
    leading: [c_int; 3],
}

impl Call {
    /// `None` if CBLAS cannot describe a matrix, or there is nothing to sum.
    fn of(c: Place, a: Place, b: Place) -> Option<Self> {
        let [m, n, k] = [c.shape[0], c.shape[1], a.shape[1]];
        if m == 0 || n == 0 || k == 0 {
            return None;
        }
        let extents = [m.try_into().ok()?, n.try_into().ok()?, k.try_into().ok()?];
        let by_rows = c.leading().map(|leading| (ROW_MAJOR, leading));
        let (order, leading_c) = by_rows.or_else(|| Some((COLUMN_MAJOR, c.transposed().leading()?)))?;
        let factor = |factor: Place| {
            let factor = if order == ROW_MAJOR { factor } else { factor.transposed() };
            let as_it_is = factor.leading().map(|leading| (AS_IT_IS, leading));
            as_it_is.or_else(|| Some((TRANSPOSED, factor.transposed().leading()?)))
        };
        let ((op_a, leading_a), (op_b, leading_b)) = (factor(a)?, factor(b)?);
        Some(Call { order, op: [op_a, op_b], extents, leading: [leading_a, leading_b, leading_c] })
    }
}

/// An element whose products CBLAS has.
pub(super) trait Local: Packable {
    /// # Safety
    /// The call describes three matrices at these addresses: those of A and B are valid for reads, that of C for reads and writes, and
    /// nobody else uses C.
    unsafe fn gemm(blas: &Blas, call: &Call, alpha: Self, a: *const Self, b: *const Self, beta: Self, c: *mut Self);
}

macro_rules! local {
    ($($t:ty: $function:ident, $value:ident => $scalar:expr;)*) => {$(
        impl Local for $t {
            unsafe fn gemm(blas: &Blas, call: &Call, alpha: Self, a: *const Self, b: *const Self, beta: Self, c: *mut Self) {
                let &Call { order, op: [op_a, op_b], extents: [m, n, k], leading: [lda, ldb, ldc] } = call;
                let scalar = |$value: &$t| $scalar;
                let (by_alpha, by_beta) = (scalar(&alpha), scalar(&beta));
                // SAFETY: the function is CBLAS' for this type, with 32-bit integers; a complex number is two floats, as in C, and is
                // passed by address. The rest is the caller's.
                unsafe {
                    (blas.$function)(order, op_a, op_b, m, n, k, by_alpha, a.cast(), lda, b.cast(), ldb, by_beta, c.cast(), ldc);
                }
            }
        }
    )*};
}
local! {
    f32: s, value => *value;
    f64: d, value => *value;
    Complex<f32>: c, value => ptr::from_ref(value).cast();
    Complex<f64>: z, value => ptr::from_ref(value).cast();
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::algebra::Matmul;
    use ndarray::{Array2, ShapeBuilder, s};

    /// Small whole numbers, so that every sum is exact.
    fn number<T: Packable>(i: usize, j: usize, unit: T) -> T {
        (0..(i * 7 + j * 5) % 11).fold(T::ZERO, |sum, _| sum.plus(unit))
    }

    fn definition<T: Local>(c: &mut ArrayViewMut2<'_, T>, alpha: T, a: &ArrayView2<'_, T>, b: &ArrayView2<'_, T>, beta: T) {
        for ((i, j), c) in c.indexed_iter_mut() {
            let sum = (0..a.ncols()).fold(T::ZERO, |sum, p| sum.plus(a[[i, p]].scaled(b[[p, j]])));
            let old = if beta == T::ZERO { T::ZERO } else { beta.scaled(*c) };
            *c = old.plus(alpha.scaled(sum));
        }
    }

    /// Each matrix by rows or by columns, whole or a part of a larger one, and once with steps, which CBLAS does not know.
    fn check<T: Local + Matmul>(unit: T, alpha: T, nan: T) {
        for (m, n, k) in [(1, 1, 1), (1, 5, 3), (5, 1, 3), (5, 3, 1), (3, 50, 9), (97, 41, 23), (5, 4, 0), (0, 3, 2), (3, 0, 2)] {
            for layout in 0..16 {
                let (part, step) = (if layout < 8 { 0 } else { 3 }, 1 + usize::from(layout == 15));
                let by = |bit: usize, [rows, columns]: [usize; 2]| {
                    let shape = (rows * step + part, columns + part).set_f(layout >> bit & 1 == 1);
                    Array2::from_shape_fn(shape, |(i, j)| number(i, j + bit, unit))
                };
                let place = |[rows, columns]: [usize; 2]| s![part..part + rows * step;step, part..part + columns];
                let (a, b, start) = (by(0, [m, k]), by(1, [k, n]), by(2, [m, n]));
                let (a, b) = (a.slice(place([m, k])), b.slice(place([k, n])));
                for (alpha, beta) in [(T::ONE, T::ZERO), (alpha, T::ONE), (alpha, alpha), (T::ZERO, alpha)] {
                    let mut expected = start.clone();
                    if beta == T::ZERO {
                        expected.slice_mut(place([m, n])).fill(nan);
                    }
                    let mut c = expected.clone();
                    definition(&mut expected.slice_mut(place([m, n])), alpha, &a, &b, beta);
                    let described = step == 1 || (m == 1 && k == 1);
                    let left = multiply(c.slice_mut(place([m, n])), alpha, &a, &b, beta);
                    let is_product = described && alpha != T::ZERO && m * n * k > 0;
                    assert_eq!(left.is_none(), is_product, "{m} x {n} x {k}, {layout}");
                    if let Some(c) = left {
                        T::multiply(c, alpha, a, b, beta);
                    }
                    assert_eq!(c, expected, "{m} x {n} x {k}, {layout}");
                }
            }
        }
    }

    #[test]
    fn every_type_and_layout_is_the_definition() {
        match library() {
            Ok(Some(_)) => {}
            Ok(None) => return eprintln!("skipped: no BLAS is found"),
            Err(what) => panic!("{what}"),
        }
        check::<f32>(1.0, 3.0, f32::NAN);
        check::<f64>(1.0, -2.0, f64::NAN);
        check(Complex::new(1.0f32, -1.0), Complex::new(2.0, 1.0), Complex::new(f32::NAN, 0.0));
        check(Complex::new(1.0f64, 2.0), Complex::new(1.0, -3.0), Complex::new(0.0, f64::NAN));
    }

    #[test]
    fn what_cblas_cannot_describe_is_left() {
        let place = |shape, strides| Place { shape, strides };
        assert_eq!(place([3, 4], [4, 1]).leading(), Some(4));
        assert_eq!(place([3, 4], [9, 1]).leading(), Some(9));
        assert_eq!(place([1, 4], [-7, 1]).leading(), Some(4));
        assert_eq!(place([3, 1], [5, -2]).leading(), Some(5));
        for strides in [[3, 1], [0, 1], [-4, 1], [8, 2], [4, -1], [1, 3], [i32::MAX as isize + 1, 1]] {
            assert_eq!(place([3, 4], strides).leading(), None, "{strides:?}");
        }
        let long = 1 << 31;
        let (tall, wide) = (place([long, 2], [2, 1]), place([2, long], [1, 2]));
        assert_eq!(Call::of(place([long, long], [long as isize, 1]), tall, wide), None);
        assert_eq!(Call::of(place([2, 2], [2, 1]), wide, tall), None);
    }

    #[test]
    fn the_order_is_that_of_c() {
        let by_rows = |rows: usize, columns: usize| Place { shape: [rows, columns], strides: [columns as isize, 1] };
        let by_columns = |rows, columns| by_rows(columns, rows).transposed();
        let call = Call::of(by_columns(3, 4), by_columns(3, 5), by_rows(5, 4)).expect("three dense matrices");
        assert_eq!((call.order, call.op), (COLUMN_MAJOR, [AS_IT_IS, TRANSPOSED]));
        assert_eq!((call.extents, call.leading), ([3, 4, 5], [3, 4, 3]));
        let call = Call::of(by_rows(3, 4), by_columns(3, 5), by_rows(5, 4)).expect("three dense matrices");
        assert_eq!((call.order, call.op, call.leading), (ROW_MAJOR, [TRANSPOSED, AS_IT_IS], [3, 4, 4]));
    }

    #[test]
    fn a_library_that_was_chosen_must_be_usable() {
        assert!(matches!(choose(Some(NONE.into())), Ok(None)));
        for (name, cause) in
            [("/nonexistent/libblas.so", "No such file"), ("libc.so.6", "it has no cblas_sgemm"), ("None", "None")]
        {
            let said = choose(Some(name.into())).expect_err("no BLAS");
            for words in [&format!("GA_BLAS={name:?} cannot be used"), cause, "cblas_zgemm", "\"none\"", "unset it"] {
                assert!(said.contains(words), "{words} is not in {said}");
            }
        }
    }

    #[test]
    fn the_cores_of_a_thread_come_back() {
        let cores = || cores::allowed(None).unwrap();
        let before = cores();
        let one = OneCore::enter();
        assert_eq!(cores(), before[..1]);
        drop(one);
        assert_eq!(cores(), before);
    }
}
