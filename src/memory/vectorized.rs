//! Plain loops that the compiler turns into vector instructions, for the instruction sets of the processor that runs them.
#![allow(unsafe_code)]

/// Runs `loops` compiled for the widest vectors that this processor has. What `loops` calls must be inlined into it (`#[inline(always)]`, closures) to be
/// compiled for those vectors too.
#[inline(always)]
#[allow(unreachable_pub, reason = "the programs of the workspace have this file too")]
pub fn vectorized<R>(loops: impl FnOnce() -> R) -> R {
    #[cfg(target_arch = "x86_64")]
    {
        #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma")]
        fn with_avx512<R>(loops: impl FnOnce() -> R) -> R {
            loops()
        }
        #[target_feature(enable = "avx2,fma")]
        fn with_avx2<R>(loops: impl FnOnce() -> R) -> R {
            loops()
        }
        let has_avx2 = is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma");
        let has_avx512 = is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512bw")
            && is_x86_feature_detected!("avx512dq")
            && is_x86_feature_detected!("avx512vl");
        if has_avx2 && has_avx512 {
            // SAFETY: the processor has all of them.
            return unsafe { with_avx512(loops) };
        }
        if has_avx2 {
            // SAFETY: the processor has both.
            return unsafe { with_avx2(loops) };
        }
    }
    loops()
}
