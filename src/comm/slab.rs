//! Values under numbers. Places are used again, numbers are not: a number that comes late finds nothing.

/// The upper half of a number counts how often its place, the lower half, was used before.
const PLACE: u64 = u32::MAX as u64;

/// See the module's essay.
#[derive(Debug)]
pub(super) struct Slab<T> {
    slots: Vec<Slot<T>>,
    free: Vec<u32>,
}

#[derive(Debug)]
struct Slot<T> {
    uses: u32,
    value: Option<T>,
}

impl<T> Default for Slab<T> {
    fn default() -> Self {
        Slab { slots: Vec::new(), free: Vec::new() }
    }
}

impl<T> Slab<T> {
    /// The number that the next [`add`](Self::add) gives.
    pub(super) fn next(&self) -> u64 {
        let place = self.free.last().map_or(self.slots.len(), |&place| place as usize);
        u64::from(self.slots.get(place).map_or(0, |slot| slot.uses)) << 32 | place as u64
    }

    /// Keeps a value.
    pub(super) fn add(&mut self, value: T) -> u64 {
        let number = self.next();
        match self.free.pop() {
            Some(place) => self.slots[place as usize].value = Some(value),
            None => self.slots.push(Slot { uses: 0, value: Some(value) }),
        }
        number
    }

    pub(super) fn get(&self, number: u64) -> Option<&T> {
        let slot = self.slots.get((number & PLACE) as usize)?;
        slot.value.as_ref().filter(|_| u64::from(slot.uses) == number >> 32)
    }

    pub(super) fn get_mut(&mut self, number: u64) -> Option<&mut T> {
        let slot = self.slots.get_mut((number & PLACE) as usize)?;
        slot.value.as_mut().filter(|_| u64::from(slot.uses) == number >> 32)
    }

    pub(super) fn remove(&mut self, number: u64) -> Option<T> {
        self.get(number)?;
        let place = (number & PLACE) as usize;
        let slot = &mut self.slots[place];
        let value = slot.value.take();
        // The place is given up when its numbers are.
        if let Some(uses) = slot.uses.checked_add(1) {
            slot.uses = uses;
            self.free.push(place as u32);
        }
        value
    }

    pub(super) fn is_empty(&self) -> bool {
        self.values().next().is_none()
    }

    /// All values, by place.
    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = (u64, &mut T)> {
        self.slots.iter_mut().enumerate().filter_map(|(place, slot)| {
            let number = u64::from(slot.uses) << 32 | place as u64;
            slot.value.as_mut().map(|value| (number, value))
        })
    }

    /// All values, by place.
    pub(super) fn values(&self) -> impl Iterator<Item = &T> {
        self.slots.iter().filter_map(|slot| slot.value.as_ref())
    }

    /// Takes all values out. Their numbers come again.
    pub(super) fn drain(&mut self) -> impl Iterator<Item = T> {
        self.free.clear();
        self.slots.drain(..).filter_map(|slot| slot.value)
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
