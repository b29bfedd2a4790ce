//! Vector loops for `f64` and `f32`: maps of two operands into one, which differ in one formula, and the dot product.

use super::level::Kernel;
use super::scalar::Scalar;
use super::vector::{Vector, store_fence};
use crate::memory::kernels::Stride;
use crate::memory::kernels::arithmetic::{DOT_LANES_BYTES, dot_lanes, sum_lanes};

/// From here on a destination that is not read is streamed past the caches: 1.4 times the speed of a C loop at 64 MiB, two processes at
/// once.
const STREAM_BYTES: usize = super::copy::STREAM_BYTES;

/// What a map computes from an element of each operand.
pub(super) trait Formula<T>: Copy {
    /// Whether there is a second operand.
    const BINARY: bool = true;

    /// The formula on one element.
    fn one(self, x: T, y: T) -> T;

    /// The formula on the vectors that lie `AT` vectors beyond two addresses. `x`, which may be the destination, is read last; and
    /// by the arithmetic instruction where possible: on Zen 5 separate loads run so far ahead that they cost up to a quarter of the
    /// speed outside the first-level cache, for some addresses.
    ///
    /// # Safety
    /// As [`Vector::load`] for `x`, and for `y` where `BINARY`.
    unsafe fn many<V: Vector, const AT: usize>(self, x: *const u8, y: *const u8) -> V;
}

/// `x + alpha * y`.
#[derive(Clone, Copy)]
pub(super) struct AddScaled<T>(pub(super) T);

impl<T: Scalar> Formula<T> for AddScaled<T> {
    #[inline(always)]
    fn one(self, x: T, y: T) -> T {
        x.plus(y.scaled(self.0))
    }

    #[inline(always)]
    unsafe fn many<V: Vector, const AT: usize>(self, x: *const u8, y: *const u8) -> V {
        // SAFETY: passed on unchanged.
        unsafe { T::add_from::<V, AT>(T::multiply_from::<V, AT>(self.0.splat(), y), x) }
    }
}

/// `alpha * x`.
#[derive(Clone, Copy)]
pub(super) struct Scaled<T>(pub(super) T);

impl<T: Scalar> Formula<T> for Scaled<T> {
    const BINARY: bool = false;

    #[inline(always)]
    fn one(self, x: T, _: T) -> T {
        x.scaled(self.0)
    }

    #[inline(always)]
    unsafe fn many<V: Vector, const AT: usize>(self, x: *const u8, _: *const u8) -> V {
        // SAFETY: passed on unchanged.
        unsafe { T::multiply_from::<V, AT>(self.0.splat(), x) }
    }
}

/// `a * x + b * y`.
#[derive(Clone, Copy)]
pub(super) struct Combined<T>(pub(super) T, pub(super) T);

impl<T: Scalar> Formula<T> for Combined<T> {
    #[inline(always)]
    fn one(self, x: T, y: T) -> T {
        x.scaled(self.0).plus(y.scaled(self.1))
    }

    #[inline(always)]
    unsafe fn many<V: Vector, const AT: usize>(self, x: *const u8, y: *const u8) -> V {
        // SAFETY: passed on unchanged.
        unsafe {
            let y = T::multiply_from::<V, AT>(self.1.splat(), y);
            T::add_lanes(T::multiply_from::<V, AT>(self.0.splat(), x), y)
        }
    }
}

/// `dst[i] = formula(x[i], y[i])` for `len` elements. Its fields are as [`crate::memory::kernels::axpby`] says.
#[derive(Clone, Copy)]
pub(super) struct Map<T, F> {
    pub(super) dst: *mut T,
    pub(super) x: *const T,
    pub(super) y: *const T,
    pub(super) len: usize,
    pub(super) formula: F,
}

impl<T: Scalar, F: Formula<T>> Kernel for Map<T, F> {
    type Output = ();

    #[inline(always)]
    unsafe fn run<V: Vector>(mut self) {
        let read = [self.x, self.y].contains(&self.dst.cast_const());
        let stream = !read && self.len * size_of::<T>() >= STREAM_BYTES && self.dst.is_aligned();
        // SAFETY: the steps together go through `len` elements once; the first makes `dst` aligned to the vector where `dst` is
        // aligned to its elements, as streaming asks.
        unsafe {
            if self.len * size_of::<T>() >= 8 * V::BYTES && self.dst.is_aligned() {
                let head = self.dst.addr().wrapping_neg() % V::BYTES / size_of::<T>();
                Map { len: head, ..self }.short::<V::Short>();
                self.skip(head);
            }
            if stream {
                self.vectors::<V, 4, true>();
                store_fence();
            } else {
                self.vectors::<V, 4, false>();
            }
            self.vectors::<V, 1, false>();
            self.short::<V::Short>();
        }
    }
}

impl<T: Scalar, F: Formula<T>> Map<T, F> {
    /// Leaves out the first `count` elements.
    #[inline(always)]
    fn skip(&mut self, count: usize) {
        self.dst = self.dst.wrapping_add(count);
        self.x = self.x.wrapping_add(count);
        self.y = self.y.wrapping_add(count);
        self.len -= count;
    }

    /// As many groups of `UNROLL` vectors as there are.
    ///
    /// # Safety
    /// The processor has the feature of `V`; when `STREAM`, `dst` is aligned to the vector and a fence follows.
    #[inline(always)]
    unsafe fn vectors<V: Vector, const UNROLL: usize, const STREAM: bool>(&mut self) {
        let step = UNROLL * V::BYTES / size_of::<T>();
        while self.len >= step {
            let (dst, x, y) = (self.dst.cast::<u8>(), self.x.cast::<u8>(), self.y.cast::<u8>());
            // SAFETY: within the next `step` elements, of which there are as many left.
            unsafe {
                self.vector::<V, 0, STREAM>(dst, x, y);
                if UNROLL == 4 {
                    self.vector::<V, 1, STREAM>(dst, x, y);
                    self.vector::<V, 2, STREAM>(dst, x, y);
                    self.vector::<V, 3, STREAM>(dst, x, y);
                }
            }
            self.skip(step);
        }
    }

    /// The formula on the vector `AT` vectors on.
    ///
    /// # Safety
    /// As [`vectors`](Map::vectors).
    #[inline(always)]
    unsafe fn vector<V: Vector, const AT: usize, const STREAM: bool>(self, dst: *mut u8, x: *const u8, y: *const u8) {
        // SAFETY: the caller vouches for one vector of each operand.
        unsafe {
            let value = self.formula.many::<V, AT>(x, y);
            if STREAM { value.stream::<AT>(dst) } else { value.store::<AT>(dst) }
        }
    }

    /// All elements, by the short vector and one by one.
    ///
    /// # Safety
    /// The processor has the feature of `V`.
    #[inline(always)]
    unsafe fn short<V: Vector>(mut self) {
        // SAFETY: `vectors` stays within `len`, the loop takes what it left.
        unsafe {
            self.vectors::<V, 1, false>();
            while self.len > 0 {
                let x = T::load(self.x);
                let y = if F::BINARY { T::load(self.y) } else { x };
                self.formula.one(x, y).store(self.dst);
                self.skip(1);
            }
        }
    }
}

/// A map for every run of a plane: `map` is the first, its `y` moves by `stride.src`, its `dst`, which is its `x`, by `stride.dst`.
pub(super) struct MapPlane<T, F> {
    pub(super) map: Map<T, F>,
    pub(super) stride: Stride,
}

impl<T: Scalar, F: Formula<T>> Kernel for MapPlane<T, F> {
    type Output = ();

    #[inline(always)]
    unsafe fn run<V: Vector>(self) {
        // SAFETY: `each` passes on one of the runs, whose elements the steps go through once.
        unsafe {
            let bytes = self.map.len * size_of::<T>();
            if bytes == V::BYTES {
                self.each(|run| run.vector::<V, 0, false>(run.dst.cast(), run.x.cast(), run.y.cast()));
            } else if bytes == V::Short::BYTES {
                self.each(|run| run.vector::<V::Short, 0, false>(run.dst.cast(), run.x.cast(), run.y.cast()));
            } else if bytes < V::BYTES {
                self.each(|run| run.short::<V::Short>());
            } else {
                self.each(|mut run| {
                    run.vectors::<V, 4, false>();
                    run.vectors::<V, 1, false>();
                    run.short::<V::Short>();
                });
            }
        }
    }
}

impl<T: Scalar, F: Formula<T>> MapPlane<T, F> {
    /// Calls `map_run` with the map of every run.
    #[inline(always)]
    fn each(self, map_run: impl Fn(Map<T, F>)) {
        let MapPlane { mut map, stride } = self;
        for _ in 0..stride.count {
            map_run(map);
            map.dst = map.dst.wrapping_byte_offset(stride.dst);
            map.x = map.dst;
            map.y = map.y.wrapping_byte_offset(stride.src);
        }
    }
}

/// The sum of `x[i] * y[i]`. Its fields are as [`crate::memory::kernels::dot`] says.
pub(super) struct Dot<T> {
    pub(super) x: *const T,
    pub(super) y: *const T,
    pub(super) len: usize,
}

impl<T: Scalar> Kernel for Dot<T> {
    type Output = T;

    #[inline(always)]
    unsafe fn run<V: Vector>(self) -> T {
        const MOST: usize = DOT_LANES_BYTES / 16;
        let Dot { mut x, mut y, mut len } = self;
        let mut lanes = [T::ZERO; DOT_LANES_BYTES / 4];
        let count = dot_lanes::<T>();
        // SAFETY: the loop reads `count` elements of each while there are as many left, the rest goes one by one; the sums are stored
        // to the private `lanes`, of which they fill the first `DOT_LANES_BYTES`.
        unsafe {
            let mut sums = [T::ZERO.splat::<V>(); MOST];
            let used = DOT_LANES_BYTES / V::BYTES;
            while len >= count {
                for (i, sum) in sums.iter_mut().enumerate().take(used) {
                    let (x, y) = (x.cast::<u8>().wrapping_add(i * V::BYTES), y.cast::<u8>().wrapping_add(i * V::BYTES));
                    *sum = T::add_lanes(*sum, T::multiply_from::<V, 0>(V::load::<0>(x), y));
                }
                (x, y, len) = (x.wrapping_add(count), y.wrapping_add(count), len - count);
            }
            for (i, sum) in sums.iter().enumerate().take(used) {
                sum.store::<0>(lanes.as_mut_ptr().cast::<u8>().add(i * V::BYTES));
            }
            for (i, lane) in lanes.iter_mut().enumerate().take(len) {
                *lane = lane.plus(T::load(x.wrapping_add(i)).scaled(T::load(y.wrapping_add(i))));
            }
        }
        sum_lanes(&mut lanes[..count])
    }
}
