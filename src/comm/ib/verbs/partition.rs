//! Which partition of the network: an entry of a port's table of partition keys (P_Keys).
//!
//! The highest bit of a key says that the port is a full member of the partition. Limited members do not reach each other. A port can be
//! limited in one partition and full in another, in any order of its entries.

use std::fs;

use super::{Unusable, library::SYSFS};

/// The bit of full members.
const FULL: u16 = 1 << 15;

/// The keys of a port, from a table of `length` entries. An empty one is zero.
pub(super) fn table(device: &str, port: u8, length: u16) -> Vec<u16> {
    let entry = |index| fs::read_to_string(format!("{SYSFS}/{device}/ports/{port}/pkeys/{index}")).ok();
    (0..length).map_while(entry).map(|text| parse(text.trim()).unwrap_or(0)).collect()
}

/// A key, as the kernel and users write it.
pub(super) fn parse(text: &str) -> Option<u16> {
    let digits = text.strip_prefix("0x").filter(|digits| !digits.starts_with('+'))?;
    u16::from_str_radix(digits, 16).ok()
}

/// The entry of the key that the user has chosen, with either membership; else the first one of a full member, or the first of all.
pub(super) fn choose(port: &str, table: &[u16], chosen: Option<u16>) -> Result<u16, Unusable> {
    let named = |key: u16| chosen.is_none_or(|chosen| (key ^ chosen) & !FULL == 0);
    let entries = || (0_u16..).zip(table).filter(|&(_, &key)| key & !FULL != 0 && named(key));
    let full = entries().find(|&(_, &key)| key & FULL != 0);
    match (full.or_else(|| entries().next()), chosen) {
        (Some((index, _)), _) => Ok(index),
        // The kernel shows no table: the entry that every port has.
        (None, None) => Ok(0),
        (None, Some(asked)) => Err(Unusable::NoPartition {
            port: port.to_owned(),
            asked,
            there: table.iter().filter(|&&key| key != 0).map(|key| format!("{key:#06x}")).collect(),
        }),
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn index(table: &[u16], chosen: Option<u16>) -> Result<u16, Unusable> {
        choose("mlx5_0:1", table, chosen)
    }

    #[test]
    fn full_members_reach_each_other() {
        assert_eq!(index(&[0xffff], None), Ok(0), "the default partition");
        assert_eq!(index(&[0x7fff, 0x8001, 0xffff], None), Ok(1), "limited members of the first one do not");
        assert_eq!(index(&[0, 0x8000, 0x7fff], None), Ok(2), "keys without a number name no partition");
        assert_eq!((index(&[], None), index(&[0, 0], None)), (Ok(0), Ok(0)));
    }

    #[test]
    fn the_users_partition_holds_with_either_membership() {
        let table = [0xffff, 0x0001, 0x8001, 0x0002];
        assert_eq!((index(&table, Some(0x8001)), index(&table, Some(1))), (Ok(2), Ok(2)));
        assert_eq!(index(&table, Some(0x8002)), Ok(3), "a limited member reaches full ones");
        let none = index(&table, Some(0x8003)).expect_err("no such key").to_string();
        assert!(none.starts_with("GA_IB_PKEY=0x8003: mlx5_0:1 is in no such partition; there is 0xffff, 0x0001, "), "{none}");
        assert!(index(&[], Some(0x8003)).is_err());
    }

    #[test]
    fn a_key_is_written_in_hexadecimal() {
        assert_eq!((parse("0x8001"), parse("0xffff"), parse("0x1")), (Some(0x8001), Some(0xffff), Some(1)));
        for wrong in ["", "8001", "0x", "0x10000", "0x+1", "-1", "0x8001 "] {
            assert_eq!(parse(wrong), None, "{wrong}");
        }
    }
}
