//! ScaLAPACK and ELPA on the parts of arrays, by Debian's libraries, which are loaded here.

use std::ffi::{c_int, c_void};

use global_arrays::{BlockCyclic, prelude::*};
use libloading::{Library, Symbol};
use mpi::{
    ffi::{MPI_Comm, RSMPI_Comm_c2f},
    raw::AsRaw,
};

use super::runner;

/// Not a multiple of a block, and with blocks for all places of a grid.
const N: usize = 37;
const BLOCK: usize = 5;
const ONE: c_int = 1;
/// The length of a text, which Fortran's compilers pass behind all other arguments.
const LENGTH: usize = 1;

/// Calls a function of a library. Its parameters have the types of the arguments, where `&T` is C's `const T *`.
macro_rules! call {
    ($library:ident.$name:ident($($argument:expr),* $(,)?) $(-> $answer:ty)?) => {{
        // SAFETY: the callers below write the arguments of each function as its documentation does.
        let function = unsafe { $library.get(concat!(stringify!($name), "\0").as_bytes()) };
        let function: Symbol<'_, unsafe extern "C" fn($(call!(@ $argument)),*) $(-> $answer)?> = function.expect(stringify!($name));
        // SAFETY: the same; pointers are to what the function needs, in an epoch if they are to a part.
        unsafe { function($($argument),*) }
    }};
    (@ $argument:expr) => { _ };
}

/// Open MPI's handles are addresses, those of MPICH integers.
fn is_open_mpi() -> bool {
    size_of::<MPI_Comm>() != size_of::<c_int>()
}

/// Skips the case if the library is not there.
fn load(name: &str, package: &str) -> Library {
    // SAFETY: the initialisers of Debian's libraries do nothing that matters here.
    unsafe { Library::new(name) }.unwrap_or_else(|_| runner::skip(&format!("there is no {name}: apt-get install {package}")))
}

fn scalapack() -> Library {
    let mpi = if is_open_mpi() { "openmpi" } else { "mpich" };
    load(&format!("libscalapack-{mpi}.so.2.2"), &format!("libscalapack-{mpi}2.2"))
}

fn array<T: Number>(group: &Group, grid: [usize; 2], shape: [usize; 2]) -> Result<GlobalArray2<T>, Error> {
    let builder = GlobalArray2::builder(group, shape).block_cyclic([BLOCK; 2]).grid(grid);
    builder.order(Order::ColumnMajor).zeros().create()
}

/// Second differences, whose eigenvalues are known.
fn differences(i: usize, j: usize) -> f64 {
    [2.0, -1.0, 0.0][i.abs_diff(j).min(2)]
}

/// Compares what a library found of [`differences`] with what is known, by the algebra of arrays.
fn check(mut vectors: GlobalArray2<f64>, values: &Array1<f64>) -> Result<(), Error> {
    let known = |k: usize| 2.0 - 2.0 * ((k + 1) as f64 * std::f64::consts::PI / (N + 1) as f64).cos();
    assert!(values.iter().enumerate().all(|(k, value)| (value - known(k)).abs() < 1e-13), "{values}");
    let matrix = GlobalArray2::from_fn(vectors.group(), [N, N], |(i, j)| differences(i, j))?;
    let mut off = GlobalArray2::zeros(vectors.group(), [N, N])?;
    off.matmul(1.0, vectors.t(), &vectors, 0.0)?;
    off.shift_diagonal(-1.0)?;
    assert!(off.max_abs()? < 1e-13);
    off.matmul(1.0, &matrix, &vectors, 0.0)?;
    vectors.scale_cols(values)?;
    off.scaled_add(-1.0, &vectors)?;
    assert!(off.max_abs()? < 1e-13);
    Ok(())
}

/// The members on a grid of BLACS.
struct Blacs {
    handle: c_int,
    context: c_int,
}

impl Blacs {
    fn new(library: &Library, comm: MPI_Comm, on: &BlockCyclic) -> Self {
        let [rows, columns] = on.grid;
        let handle = call!(library.Csys2blacs_handle(comm) -> c_int);
        let mut context = handle;
        call!(library.Cblacs_gridinit(&mut context, c"R".as_ptr(), rows, columns));
        let (mut grid, mut place) = ([0; 2], [0; 2]);
        let ([rows, columns], [row, column]) = (&mut grid, &mut place);
        call!(library.Cblacs_gridinfo(context, rows, columns, row, column));
        assert_eq!((context >= 0).then_some(place), on.place);
        assert_eq!(grid, if on.place.is_some() { on.grid } else { [-1; 2] });
        Blacs { handle, context }
    }

    /// The descriptor, if it is the one that ScaLAPACK makes.
    fn descriptor(&self, library: &Library, of: &BlockCyclic) -> [c_int; 9] {
        let ([m, n], [mb, nb], [rows, columns]) = (of.shape, of.block, of.grid);
        let (mut made, mut info, lld) = ([0; 9], 0, of.leading_dimension);
        if let Some([row, column]) = of.place {
            let local = [(m, mb, row, rows), (n, nb, column, columns)];
            let local = local.map(|(n, block, at, of)| call!(library.numroc_(&n, &block, &at, &0, &of) -> c_int));
            assert_eq!(of.local, local);
            call!(library.descinit_(&mut made, &m, &n, &mb, &nb, &0, &0, &self.context, &lld, &mut info));
            assert_eq!((info, of.descriptor(self.context)), (0, made));
        }
        of.descriptor(self.context)
    }

    fn free(self, library: &Library) {
        if self.context >= 0 {
            call!(library.Cblacs_gridexit(self.context));
        }
        call!(library.Cfree_blacs_system_handle(self.handle));
    }
}

/// Eigenvalues and vectors of a real matrix, and solutions with a complex one, on a grid of all members or of the first.
pub(crate) fn of_all(grid: [usize; 2]) {
    let library = &scalapack();
    run(|job| {
        let comm = job.mpi_comm()?;
        let mut a = array::<f64>(job, grid, [N, N])?;
        a.map_indexed(|(i, j), _| differences(i, j))?;
        let on = a.scalapack()?;
        let blacs = Blacs::new(library, comm.as_raw(), &on);
        eigen(job, library, a, &blacs.descriptor(library, &on))?;
        solve(job, library, grid, &blacs)?;
        blacs.free(library);
        job.sync()
    })
    .unwrap_or_else(|error| panic!("{error}"));
}

fn eigen(job: &Job, library: &Library, mut a: GlobalArray2<f64>, descriptor: &[c_int; 9]) -> Result<(), Error> {
    let n = N as c_int;
    let (mut vectors, mut values, is_on_grid) = (a.duplicate("vectors")?, Array1::zeros(N), a.scalapack()?.place.is_some());
    let info = job.epoch((a.owned_mut(), vectors.owned_mut()), |(mut a, mut z)| {
        let (a, z, w) = (a.view_mut().as_mut_ptr(), z.view_mut().as_mut_ptr(), values.as_mut_ptr());
        // Enough by its documentation and what it leaves out.
        let (mut work, mut whole, mut info) = (vec![0.0; 10 * N * N + 1000], vec![0; 8 * N + 100], 0);
        let (len, whole_len) = (work.len() as c_int, whole.len() as c_int);
        let (work, whole) = (work.as_mut_ptr(), whole.as_mut_ptr());
        if is_on_grid {
            call!(library.pdsyevd_(
                c"V".as_ptr(),
                c"L".as_ptr(),
                &n,
                a,
                &ONE,
                &ONE,
                descriptor,
                w,
                z,
                &ONE,
                &ONE,
                descriptor,
                work,
                &len,
                whole,
                &whole_len,
                &mut info,
                LENGTH,
                LENGTH,
            ));
        }
        info
    })?;
    assert_eq!(info, 0);
    job.broadcast(0, values.as_slice_mut().expect("dense"))?;
    check(vectors, &values)
}

/// Three right-hand sides: less than a block, so that only one column of the grid has any.
fn solve(job: &Job, library: &Library, grid: [usize; 2], blacs: &Blacs) -> Result<(), Error> {
    const SIDES: usize = 3;
    let element = |i: usize, j: usize| Complex64::new(((i * N + 3 * j * j) as f64).sin(), ((i * j) as f64).cos());
    let (mut a, mut b) = (array(job, grid, [N, N])?, array(job, grid, [N, SIDES])?);
    a.map_indexed(|(i, j), _| element(i, j))?;
    b.map_indexed(|(i, j), _| element(j + 1, i))?;
    let matrix = GlobalArray2::from_fn(job, [N, N], |(i, j)| element(i, j))?;
    let (on, of_b) = (a.scalapack()?, b.scalapack()?);
    let descriptors = [&on, &of_b].map(|of| blacs.descriptor(library, of));
    let info = job.epoch((a.owned_mut(), b.owned_mut()), |(mut a, mut b)| {
        let (a, b, mut info) = (a.view_mut().as_mut_ptr(), b.view_mut().as_mut_ptr(), 0);
        let mut pivots = vec![0; on.local[0] as usize + BLOCK];
        let pivots = pivots.as_mut_ptr();
        let (n, sides, [of_a, of_b]) = (N as c_int, SIDES as c_int, &descriptors);
        if on.place.is_some() {
            call!(library.pzgesv_(&n, &sides, a, &ONE, &ONE, of_a, pivots, b, &ONE, &ONE, of_b, &mut info));
        }
        info
    })?;
    assert_eq!(info, 0);
    let mut rest = GlobalArray2::from_fn(job, [N, SIDES], |(i, j)| element(j + 1, i))?;
    rest.matmul((-1.0).into(), &matrix, &b, 1.0.into())?;
    assert!(rest.max_abs()? < 1e-10);
    Ok(())
}

/// Eigenvalues and vectors by ELPA, on a group whose members are all on the grid.
pub(crate) fn by_elpa(grid: [usize; 2]) {
    if !is_open_mpi() {
        runner::skip("Debian's ELPA is for Open MPI");
    }
    let library = &load("libelpa.so.19", "libelpa19");
    run(|job| {
        let members = grid[0] * grid[1];
        let group = job.split(usize::from(job.rank() >= members))?;
        if job.rank() < members {
            elpa(&group, library, grid)?;
        }
        job.sync()
    })
    .unwrap_or_else(|error| panic!("{error}"));
}

fn elpa(group: &Group, library: &Library, grid: [usize; 2]) -> Result<(), Error> {
    /// Of the version from which its functions have these arguments.
    const VERSION: c_int = 20_211_125;
    let comm = group.mpi_comm()?;
    let mut a = array(group, grid, [N, N])?;
    a.map_indexed(|(i, j), _| differences(i, j))?;
    let (mut vectors, mut values) = (a.duplicate("vectors")?, Array1::zeros(N));
    let (on, mut error) = (a.scalapack()?, 0);
    let [row, column] = on.place.expect("all are on the grid");
    assert_eq!(call!(library.elpa_init(VERSION) -> c_int), 0);
    let handle = call!(library.elpa_allocate(&mut error) -> *mut c_void);
    // SAFETY: a communicator.
    let parent = unsafe { RSMPI_Comm_c2f(comm.as_raw()) };
    for (name, value) in [
        (c"na", on.shape[0]),
        (c"nev", on.shape[0]),
        (c"nblk", on.block[0]),
        (c"local_nrows", on.leading_dimension),
        (c"local_ncols", on.local[1]),
        (c"mpi_comm_parent", parent),
        (c"process_row", row),
        (c"process_col", column),
    ] {
        call!(library.elpa_set_integer(handle, name.as_ptr(), value, &mut error));
        assert_eq!(error, 0, "{name:?}");
    }
    assert_eq!(call!(library.elpa_setup(handle) -> c_int), 0);
    let error = group.epoch((a.owned_mut(), vectors.owned_mut()), |(mut a, mut z)| {
        let (a, z, w) = (a.view_mut().as_mut_ptr(), z.view_mut().as_mut_ptr(), values.as_mut_ptr());
        call!(library.elpa_eigenvectors_a_h_a_d(handle, a, w, z, &mut error));
        error
    })?;
    assert_eq!(error, 0);
    check(vectors, &values)?;
    let mut error = 0;
    call!(library.elpa_deallocate(handle, &mut error));
    call!(library.elpa_uninit(&mut error));
    Ok(())
}
