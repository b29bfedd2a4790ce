//! Which entry of a port's table of global identifiers (GIDs) stands for it.
//!
//! Over Ethernet the kernel makes an entry of each address of the interface, for each version of RoCE. Addresses that are gone leave holes.
//! The first entries are link-local, which routers do not pass on. So an entry of version 2 with an IPv4 address comes first, then one with
//! an IPv6 address, and a link-local one last. (Both ends need addresses of one kind, and a machine gets its addresses in any order.) Over
//! InfiniBand the subnet manager's entry 0 is always there.

use std::{fmt, fs, net::Ipv6Addr};

use super::{Unusable, library::SYSFS};

/// Entries that an address handle can name: its field has eight bits.
pub(super) const NAMEABLE: u32 = 256;

/// An entry that is not empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Gid {
    pub(super) index: u8,
    pub(super) raw: [u8; 16],
    pub(super) kind: GidKind,
}

/// What packets with a GID look like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum GidKind {
    /// InfiniBand, or RoCE's first version, which has no IP.
    Plain,
    /// RoCE over UDP.
    Roce2,
}

impl Gid {
    /// Lower for addresses that more machines have, and that lead farther.
    fn rank(&self) -> u8 {
        match Ipv6Addr::from(self.raw) {
            address if address.to_ipv4_mapped().is_some_and(|address| !address.is_link_local()) => 0,
            address => 1 + u8::from(address.is_unicast_link_local() || address.to_ipv4_mapped().is_some()),
        }
    }
}

impl fmt::Display for Gid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self.kind {
            GidKind::Plain => "InfiniBand or RoCE v1",
            GidKind::Roce2 => "RoCE v2",
        };
        write!(f, "{} ({kind}, {})", self.index, Ipv6Addr::from(self.raw))
    }
}

/// Returns true if an entry is empty.
pub(super) fn is_hole(raw: [u8; 16]) -> bool {
    raw == [0; 16]
}

/// What the kernel says of an entry that is not empty.
pub(super) fn kind(device: &str, port: u8, index: u8) -> GidKind {
    let path = format!("{SYSFS}/{device}/ports/{port}/gid_attrs/types/{index}");
    let text = fs::read_to_string(path);
    if text.is_ok_and(|text| text.trim() == "RoCE v2") { GidKind::Roce2 } else { GidKind::Plain }
}

/// The entry that the user has chosen, or the best one.
///
/// # Errors
/// The chosen entry is empty. There is none of RoCE v2, over Ethernet.
pub(super) fn choose(port: &str, table: &[Gid], ethernet: bool, chosen: Option<u8>) -> Result<Gid, Unusable> {
    let there = || table.iter().map(Gid::to_string).collect();
    if let Some(index) = chosen {
        let found = table.iter().find(|gid| gid.index == index);
        return found.cloned().ok_or_else(|| Unusable::GidHole { port: port.to_owned(), index, there: there() });
    }
    let usable = table.iter().filter(|gid| !ethernet || gid.kind == GidKind::Roce2);
    let best = usable.min_by_key(|gid| (if ethernet { gid.rank() } else { 0 }, gid.index));
    best.cloned().ok_or_else(|| Unusable::NoGid { port: port.to_owned(), there: there() })
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn gid(index: u8, address: &str, kind: GidKind) -> Gid {
        Gid { index, raw: address.parse::<Ipv6Addr>().expect("an address").octets(), kind }
    }

    fn index(table: &[Gid], ethernet: bool, chosen: Option<u8>) -> Result<u8, Unusable> {
        choose("a:1", table, ethernet, chosen).map(|gid| gid.index)
    }

    #[test]
    fn an_address_that_routers_pass_on_comes_first() {
        let link = gid(0, "fe80::1", GidKind::Roce2);
        let old = gid(1, "::ffff:10.0.0.1", GidKind::Plain);
        let four = gid(4, "::ffff:10.0.0.1", GidKind::Roce2);
        let six = gid(9, "2001:db8::1", GidKind::Roce2);
        let table = [link.clone(), old.clone(), four, six.clone()];
        assert_eq!(index(&table, true, None), Ok(4));
        assert_eq!(index(&[six.clone(), link.clone()], true, None), Ok(9));
        let alone = gid(0, "::ffff:169.254.1.1", GidKind::Roce2);
        assert_eq!(index(&[alone, six.clone()], true, None), Ok(9), "routers pass on no link-local address of either kind");
        let early = Gid { index: 2, ..six };
        assert_eq!(
            index(&[table[0].clone(), early, table[2].clone()], true, None),
            Ok(4),
            "in the order of addresses, not of entries"
        );
        assert_eq!(index(&[old.clone(), link], true, None), Ok(0));
        let none = index(std::slice::from_ref(&old), true, None).expect_err("version 1 only");
        assert!(none.to_string().contains("1 (InfiniBand or RoCE v1, ::ffff:10.0.0.1)"), "{none}");
        assert_eq!(index(&[old], false, None), Ok(1), "over InfiniBand versions of RoCE mean nothing");
    }

    #[test]
    fn the_users_choice_holds_unless_it_is_a_hole() {
        let table = [gid(0, "fe80::1", GidKind::Plain), gid(2, "fe80::1", GidKind::Roce2)];
        assert_eq!(index(&table, true, Some(0)), Ok(0));
        let hole = index(&table, true, Some(1)).expect_err("a hole").to_string();
        assert!(hole.starts_with("GA_IB_GID=1: this entry of the GID table of a:1 is empty; there is 0 ("), "{hole}");
        assert!(index(&[], false, None).is_err());
    }
}
