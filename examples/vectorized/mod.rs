//! Plain loops that the compiler turns into vector instructions, for the instruction sets of the processor that runs them.

/// Runs `loops` compiled for the widest vectors that this processor has.
///
/// What `loops` calls must be inlined into it (`#[inline(always)]`, closures) to be compiled for those vectors too.
#[inline(always)]
pub(crate) fn vectorized<R>(loops: impl FnOnce() -> R) -> R {
    struct Loops<F>(F);
    impl<R, F: FnOnce() -> R> pulp::NullaryFnOnce for Loops<F> {
        type Output = R;
        #[inline(always)]
        fn call(self) -> R {
            (self.0)()
        }
    }
    pulp::Arch::new().dispatch(Loops(loops))
}
