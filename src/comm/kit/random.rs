//! Random numbers: from a seed by SplitMix64 (Steele, Lea and Flood, 2014), and from the system.

use rustix::rand::{GetRandomFlags, getrandom};

/// Numbers of a seed.
#[derive(Debug)]
pub(in crate::comm) struct Random(u64);

impl Random {
    pub(in crate::comm) fn new(seed: u64) -> Self {
        Random(seed)
    }

    /// A number below `end`.
    pub(in crate::comm) fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let z = (self.0 ^ self.0 >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let z = (z ^ z >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((z ^ z >> 31) % end as u64) as usize
    }
}

/// Words that nobody can guess.
///
/// # Errors
/// The system has none yet, or is not to give them.
pub(in crate::comm) fn secret<const N: usize>() -> rustix::io::Result<[u64; N]> {
    let mut words = [0; N];
    // So few bytes come at once, once the system has any.
    getrandom(bytemuck::cast_slice_mut::<u64, u8>(&mut words[..]), GetRandomFlags::empty())?;
    Ok(words)
}
