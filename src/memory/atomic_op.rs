//! Atomic operations on words of four and eight bytes, by the processor.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// An atomic operation on an aligned word of four or eight bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub(crate) enum AtomicOp {
    /// Reads.
    Load = 0,
    /// Replaces.
    Swap = 1,
    /// Adds, wrapping.
    Add = 2,
    /// Bitwise and.
    And = 3,
    /// Bitwise or.
    Or = 4,
    /// Bitwise exclusive or.
    Xor = 5,
    /// Signed minimum.
    MinSigned = 6,
    /// Signed maximum.
    MaxSigned = 7,
    /// Unsigned minimum.
    MinUnsigned = 8,
    /// Unsigned maximum.
    MaxUnsigned = 9,
    /// Replaces by the operand if the word equals the comparand.
    CompareSwap = 10,
}

impl AtomicOp {
    /// The operation of a code that came by a network.
    pub(crate) fn of_code(code: u8) -> Option<Self> {
        use AtomicOp::*;
        [Load, Swap, Add, And, Or, Xor, MinSigned, MaxSigned, MinUnsigned, MaxUnsigned, CompareSwap]
            .into_iter()
            .find(|&op| op as u8 == code)
    }
}

/// What an operation makes of a word of eight bytes, if it changes it.
pub(crate) fn changed(op: AtomicOp, old: u64, operand: u64, comparand: u64) -> Option<u64> {
    use AtomicOp::{Add, And, CompareSwap, Load, MaxSigned, MaxUnsigned, MinSigned, MinUnsigned, Or, Swap, Xor};
    let new = match op {
        Load => old,
        Swap => operand,
        Add => old.wrapping_add(operand),
        And => old & operand,
        Or => old | operand,
        Xor => old ^ operand,
        MinSigned => old.cast_signed().min(operand.cast_signed()).cast_unsigned(),
        MaxSigned => old.cast_signed().max(operand.cast_signed()).cast_unsigned(),
        MinUnsigned => old.min(operand),
        MaxUnsigned => old.max(operand),
        CompareSwap if old == comparand => operand,
        CompareSwap => old,
    };
    (new != old).then_some(new)
}

/// Applies an atomic operation by the processor and returns the old value.
///
/// # Safety
/// `word` points to committed memory aligned to `width`, which is 4 or 8.
#[inline]
pub(crate) unsafe fn apply_atomic(word: *mut u8, op: AtomicOp, width: usize, operand: u64, comparand: u64) -> u64 {
    macro_rules! apply {
        ($atomic:ty, $signed:ty, $unsigned:ty) => {{
            let operand = operand as $unsigned;
            // SAFETY: the caller promises alignment and memory that lives; atomics may be shared with other processes.
            let word = unsafe { <$atomic>::from_ptr(word.cast()) };
            let order = Ordering::AcqRel;
            let update = |f: &dyn Fn($unsigned) -> $unsigned| {
                let (Ok(old) | Err(old)) = word.fetch_update(order, Ordering::Acquire, |old| Some(f(old)));
                old
            };
            let old = match op {
                AtomicOp::Load => word.load(Ordering::Acquire),
                AtomicOp::Swap => word.swap(operand, order),
                AtomicOp::Add => word.fetch_add(operand, order),
                AtomicOp::And => word.fetch_and(operand, order),
                AtomicOp::Or => word.fetch_or(operand, order),
                AtomicOp::Xor => word.fetch_xor(operand, order),
                AtomicOp::MinUnsigned => word.fetch_min(operand, order),
                AtomicOp::MaxUnsigned => word.fetch_max(operand, order),
                AtomicOp::MinSigned => update(&|old| (old as $signed).min(operand as $signed) as $unsigned),
                AtomicOp::MaxSigned => update(&|old| (old as $signed).max(operand as $signed) as $unsigned),
                AtomicOp::CompareSwap => match word.compare_exchange(comparand as $unsigned, operand, order, Ordering::Acquire) {
                    Ok(old) | Err(old) => old,
                },
            };
            u64::from(old)
        }};
    }
    if width == 8 { apply!(AtomicU64, i64, u64) } else { apply!(AtomicU32, i32, u32) }
}
