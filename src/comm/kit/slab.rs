//! Values under numbers. Places are used again, numbers are not: a late number finds nothing.

/// The upper half of a number counts how often its place, the lower half, was used before.
const PLACE: u64 = u32::MAX as u64;

/// Values under numbers.
#[derive(Debug)]
pub(in crate::comm) struct Slab<T> {
    values: Vec<Option<T>>,
    /// How often each place was used before: beside each other, so that this alone is often in a cache.
    uses: Vec<u32>,
    free: Vec<u32>,
}

impl<T> Default for Slab<T> {
    fn default() -> Self {
        Slab { values: Vec::new(), uses: Vec::new(), free: Vec::new() }
    }
}

impl<T> Slab<T> {
    /// The number that the next [`add`](Self::add) gives.
    pub(in crate::comm) fn next(&self) -> u64 {
        let place = self.free.last().map_or(self.values.len(), |&place| place as usize);
        u64::from(self.uses.get(place).copied().unwrap_or(0)) << 32 | place as u64
    }

    /// Keeps a value.
    pub(in crate::comm) fn add(&mut self, value: T) -> u64 {
        let number = self.next();
        match self.free.pop() {
            Some(place) => self.values[place as usize] = Some(value),
            None => {
                self.values.push(Some(value));
                self.uses.push(0);
            }
        }
        number
    }

    /// The place of a number, unless that comes late.
    fn place(&self, number: u64) -> Option<usize> {
        let place = (number & PLACE) as usize;
        self.uses.get(place).filter(|&&uses| u64::from(uses) == number >> 32).map(|_| place)
    }

    pub(in crate::comm) fn get(&self, number: u64) -> Option<&T> {
        self.values[self.place(number)?].as_ref()
    }

    pub(in crate::comm) fn get_mut(&mut self, number: u64) -> Option<&mut T> {
        let place = self.place(number)?;
        self.values[place].as_mut()
    }

    pub(in crate::comm) fn remove(&mut self, number: u64) -> Option<T> {
        let place = self.place(number)?;
        let value = self.values[place].take()?;
        // The place is given up when its numbers are.
        if let Some(uses) = self.uses[place].checked_add(1) {
            self.uses[place] = uses;
            self.free.push(place as u32);
        }
        Some(value)
    }

    pub(in crate::comm) fn is_empty(&self) -> bool {
        self.values().next().is_none()
    }

    /// All values, by place.
    pub(in crate::comm) fn iter_mut(&mut self) -> impl Iterator<Item = (u64, &mut T)> {
        self.values.iter_mut().zip(&self.uses).enumerate().filter_map(|(place, (value, &uses))| {
            let number = u64::from(uses) << 32 | place as u64;
            value.as_mut().map(|value| (number, value))
        })
    }

    /// All values, by place.
    pub(in crate::comm) fn values(&self) -> impl Iterator<Item = &T> {
        self.values.iter().flatten()
    }

    /// Takes all values out. Their numbers come again.
    pub(in crate::comm) fn drain(&mut self) -> impl Iterator<Item = T> {
        self.free.clear();
        self.uses.clear();
        self.values.drain(..).flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_used_again_and_numbers_are_not() {
        let mut slab = Slab::default();
        let [first, second] = ["a", "b"].map(|value| {
            let number = slab.next();
            assert_eq!(slab.add(value), number);
            number
        });
        assert_eq!((slab.get(first).copied(), slab.get_mut(second).copied()), (Some("a"), Some("b")));
        assert_eq!((slab.remove(first), slab.remove(first), slab.get(first)), (Some("a"), None, None));
        let third = slab.next();
        assert_eq!(slab.add("c"), third);
        assert_eq!(third & PLACE, first & PLACE, "the place of the first");
        assert_eq!((slab.get(first).copied(), slab.get_mut(first).copied(), slab.remove(first)), (None, None, None));
        assert_eq!(slab.values().collect::<Vec<_>>(), [&"c", &"b"]);
        assert_eq!(slab.iter_mut().map(|(number, _)| number).collect::<Vec<_>>(), [third, second]);
        assert_eq!(slab.drain().collect::<Vec<_>>(), ["c", "b"]);
        assert!(slab.is_empty() && slab.get(second).is_none());
    }

    #[test]
    fn numbers_that_nobody_gave_find_nothing() {
        let mut slab = Slab::default();
        slab.add(1);
        for number in [1, 1 << 32, u64::MAX] {
            assert_eq!((slab.get(number).copied(), slab.remove(number)), (None, None), "{number:#x}");
        }
    }
}
