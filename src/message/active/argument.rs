//! What a message carries beside a slice: numbers, options, arrays and tuples, each as words.

/// A value that a message carries, or that its handler returns.
///
/// Implemented for numbers, `bool`, `char`, `()`, and for options, arrays and tuples of them. For a type of your own, pass its fields on:
/// ```
/// use global_arrays::active::Argument;
/// struct Edge(u64, f64);
/// impl Argument for Edge {
///     const WORDS: usize = <(u64, f64)>::WORDS;
///     fn write(&self, to: &mut [u64]) {
///         (self.0, self.1).write(to)
///     }
///     fn read(from: &[u64]) -> Option<Self> {
///         <(u64, f64)>::read(from).map(|(to, weight)| Edge(to, weight))
///     }
/// }
/// ```
pub trait Argument: Sized + 'static {
    /// Words of eight bytes that it takes; at most 13.
    const WORDS: usize;

    /// Writes it; the slice is as long as [`WORDS`](Self::WORDS).
    fn write(&self, to: &mut [u64]);

    /// Reads it; `None` if no value has these words.
    fn read(from: &[u64]) -> Option<Self>;
}

macro_rules! numbers {
    ($($number:ty: $to:expr, $from:expr;)*) => {$(
        impl Argument for $number {
            const WORDS: usize = 1;
            fn write(&self, to: &mut [u64]) {
                to[0] = $to(*self);
            }
            fn read(from: &[u64]) -> Option<Self> {
                $from(from[0])
            }
        }
    )*};
}
numbers! {
    u8: u64::from, |word| u8::try_from(word).ok();
    u16: u64::from, |word| u16::try_from(word).ok();
    u32: u64::from, |word| u32::try_from(word).ok();
    u64: |value| value, Some;
    usize: |value| value as u64, |word| usize::try_from(word).ok();
    i8: |value| i64::from(value) as u64, |word| i8::try_from(word as i64).ok();
    i16: |value| i64::from(value) as u64, |word| i16::try_from(word as i64).ok();
    i32: |value| i64::from(value) as u64, |word| i32::try_from(word as i64).ok();
    i64: |value| value as u64, |word| Some(word as i64);
    isize: |value| value as i64 as u64, |word| isize::try_from(word as i64).ok();
    f32: |value| u64::from(f32::to_bits(value)), |word| u32::try_from(word).ok().map(f32::from_bits);
    f64: f64::to_bits, |word| Some(f64::from_bits(word));
    bool: u64::from, |word| (word < 2).then_some(word == 1);
    char: |value| u64::from(u32::from(value)), |word| u32::try_from(word).ok().and_then(char::from_u32);
}

impl<A: Argument> Argument for Option<A> {
    const WORDS: usize = 1 + A::WORDS;

    fn write(&self, to: &mut [u64]) {
        let (there, value) = to.split_at_mut(1);
        there[0] = u64::from(self.is_some());
        match self {
            Some(inner) => inner.write(value),
            None => value.fill(0),
        }
    }

    fn read(from: &[u64]) -> Option<Self> {
        if bool::read(&from[..1])? { A::read(&from[1..]).map(Some) } else { Some(None) }
    }
}

impl<A: Argument, const N: usize> Argument for [A; N] {
    const WORDS: usize = N * A::WORDS;

    fn write(&self, to: &mut [u64]) {
        self.iter().enumerate().for_each(|(k, value)| value.write(&mut to[k * A::WORDS..(k + 1) * A::WORDS]));
    }

    fn read(from: &[u64]) -> Option<Self> {
        let values: Option<Vec<A>> = (0..N).map(|k| A::read(&from[k * A::WORDS..(k + 1) * A::WORDS])).collect();
        values?.try_into().ok()
    }
}

macro_rules! tuples {
    ($($($name:ident)*;)*) => {$(
        impl<$($name: Argument),*> Argument for ($($name,)*) {
            const WORDS: usize = 0 $(+ $name::WORDS)*;
            #[allow(non_snake_case, unused_variables, unused_mut, unused_assignments, reason = "one macro for all lengths")]
            fn write(&self, mut to: &mut [u64]) {
                let ($($name,)*) = self;
                $(
                    let (own, rest) = to.split_at_mut($name::WORDS);
                    $name.write(own);
                    to = rest;
                )*
            }
            #[allow(non_snake_case, unused_variables, unused_mut, unused_assignments, reason = "one macro for all lengths")]
            fn read(mut from: &[u64]) -> Option<Self> {
                $(
                    let (own, rest) = from.split_at($name::WORDS);
                    let $name = $name::read(own)?;
                    from = rest;
                )*
                Some(($($name,)*))
            }
        }
    )*};
}
tuples! {
    ;
    A;
    A B;
    A B C;
    A B C D;
    A B C D E;
    A B C D E F;
}

#[cfg(test)]
mod tests {
    use super::*;

    fn there_and_back<A: Argument + PartialEq + std::fmt::Debug>(value: A) {
        let mut words = vec![u64::MAX; A::WORDS];
        value.write(&mut words);
        assert_eq!(A::read(&words), Some(value));
    }

    #[test]
    fn values_come_back() {
        there_and_back((i8::MIN, i16::MIN, i32::MIN, i64::MIN, isize::MIN, u64::MAX));
        there_and_back((-0.5_f32, f64::MAX, true, 'é', usize::MAX, ()));
        there_and_back([Some((1_u8, [2_u16; 3])), None]);
        there_and_back(((), (3_u32,)));
        assert_eq!((<()>::WORDS, <Option<[(u8, f64); 3]>>::WORDS), (0, 7));
    }

    #[test]
    fn words_of_no_value_are_refused() {
        assert_eq!(bool::read(&[2]), None);
        assert_eq!(<Option<u8>>::read(&[2, 0]), None);
        assert_eq!(<(u64, i8)>::read(&[0, 128]), None);
        assert_eq!(<[char; 1]>::read(&[0xD800]), None);
    }
}
