//! A value that the program or the environment may set: how it is found, read and refused.

use std::{env, fmt};

use crate::error::Error;

/// What a size must be.
pub(super) const BYTES: &str = "a whole number of bytes above 0 that can be addressed, optionally with the suffix K, M, G or T";

/// A value that the program or the environment may set, and what is allowed.
pub(super) struct Setting<'a> {
    pub(super) method: &'static str,
    pub(super) variable: &'static str,
    pub(super) allowed: &'a str,
}

impl Setting<'_> {
    /// What the program set, else the variable if it is there and not empty. Either must be allowed.
    pub(super) fn value<V: fmt::Debug>(
        &self,
        set: Option<V>,
        parse: impl Fn(&str) -> Option<V>,
        allows: impl Fn(&V) -> bool,
    ) -> Result<Option<V>, Error> {
        let Setting { method, variable, allowed } = *self;
        match set {
            Some(value) if allows(&value) => Ok(Some(value)),
            Some(value) => Err(Error::Launch(format!("{method}({value:?}) (or {variable}) is not {allowed}"))),
            None => self::variable(variable, allowed, |text| parse(text).filter(&allows)),
        }
    }
}

/// A variable that must be right if it is there and not empty.
pub(super) fn variable<V>(name: &'static str, allowed: &str, parse: impl Fn(&str) -> Option<V>) -> Result<Option<V>, Error> {
    let Some(value) = env::var_os(name).filter(|value| !value.is_empty()) else { return Ok(None) };
    match value.to_str().and_then(|text| parse(text.trim())) {
        Some(parsed) => Ok(Some(parsed)),
        None => Err(Error::Launch(format!("{name}={value:?} is not {allowed}"))),
    }
}

pub(super) fn zero_or_one(text: &str) -> Option<bool> {
    match text {
        "0" => Some(false),
        "1" => Some(true),
        _ => None,
    }
}

/// A number of bytes with an optional suffix.
pub(super) fn size(text: &str) -> Option<u64> {
    let (digits, shift) = match text.char_indices().next_back()? {
        (at, 'k' | 'K') => (&text[..at], 10),
        (at, 'm' | 'M') => (&text[..at], 20),
        (at, 'g' | 'G') => (&text[..at], 30),
        (at, 't' | 'T') => (&text[..at], 40),
        _ => (text, 0),
    };
    digits.trim().parse::<u64>().ok()?.checked_mul(1 << shift)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_take_suffixes() {
        assert_eq!(size("4096"), Some(4096));
        assert_eq!(size("2K"), Some(2048));
        assert_eq!(size("3g"), Some(3 << 30));
        assert_eq!(size("x"), None);
        assert_eq!(size("99999999999T"), None);
    }
}
