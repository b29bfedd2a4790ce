//! Where a port is reached.

use std::{fmt, net::Ipv6Addr};

use crate::comm::start::devices::directory::Words;

/// Numbers of pairs and of packets are below.
pub(in crate::comm::ib) const NUMBERS: u32 = 1 << 24;

/// Where a port is, and which queue pair takes datagrams there.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(in crate::comm::ib) struct Address {
    /// The global identifier. Over Ethernet an IPv6 address, or an IPv4 address mapped into one.
    pub(in crate::comm::ib) gid: [u8; 16],
    /// The local identifier; zero over Ethernet.
    pub(in crate::comm::ib) lid: u16,
    /// The longest packet of the port, as verbs writes it: 1 for 256 bytes to 5 for 4096. A path takes the smaller of both ends.
    pub(in crate::comm::ib) mtu: u8,
    /// The number of the datagram queue pair, 24 bits.
    pub(in crate::comm::ib) number: u32,
    /// The Q_Key that it takes.
    pub(in crate::comm::ib) key: u32,
    /// Reads and atomics of a peer that it answers at once ([`DeviceLimits::answer_depth`](super::DeviceLimits::answer_depth)).
    pub(in crate::comm::ib) answers: u8,
    /// Packets to this port need the global part of the route, also in its subnet.
    pub(in crate::comm::ib) global: bool,
}

impl Address {
    const BYTES: usize = 29;

    fn encode(&self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        bytes[..16].copy_from_slice(&self.gid);
        bytes[16..18].copy_from_slice(&self.lid.to_be_bytes());
        bytes[18] = self.mtu;
        bytes[19..23].copy_from_slice(&self.number.to_be_bytes());
        bytes[23..27].copy_from_slice(&self.key.to_be_bytes());
        bytes[27] = self.answers;
        bytes[28] = self.global.into();
        bytes
    }

    /// None if the bytes cannot be an address.
    fn decode(bytes: &[u8]) -> Option<Self> {
        let (gid, rest) = bytes.split_first_chunk()?;
        let (lid, rest) = rest.split_first_chunk()?;
        let (&mtu, rest) = rest.split_first()?;
        let (number, rest) = rest.split_first_chunk()?;
        let (key, &[answers, global]) = rest.split_first_chunk().and_then(|(key, rest)| Some((key, rest.try_into().ok()?)))?;
        let key = u32::from_be_bytes(*key);
        let (lid, number) = (u16::from_be_bytes(*lid), u32::from_be_bytes(*number));
        let possible = (1..=5).contains(&mtu) && number < NUMBERS && global <= 1;
        possible.then_some(Address { gid: *gid, lid, mtu, number, key, answers, global: global == 1 })
    }

    /// As the [`Directory`](crate::comm::start::devices::directory::Directory) keeps it.
    pub(in crate::comm::ib) fn to_words(self) -> Words {
        let mut words = Words::default();
        bytemuck::cast_slice_mut(&mut words)[..Self::BYTES].copy_from_slice(&self.encode());
        words.map(u64::from_le)
    }

    /// None if the words cannot be those of an address.
    pub(in crate::comm::ib) fn of_words(words: Words) -> Option<Self> {
        let words = words.map(u64::to_le);
        let (address, rest) = bytemuck::cast_slice(&words).split_at(Self::BYTES);
        Self::decode(address).filter(|_| rest.iter().all(|&byte| byte == 0))
    }
}

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (LID {}), datagrams to {:#x}", Ipv6Addr::from(self.gid), self.lid, self.number)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    const ADDRESS: Address = Address {
        gid: [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16],
        lid: 0x1718,
        mtu: 3,
        number: 0xab_cdef,
        key: 7,
        answers: 9,
        global: true,
    };

    #[test]
    fn an_address_travels_as_bytes() {
        let bytes = ADDRESS.encode();
        assert_eq!(Address::decode(&bytes), Some(ADDRESS));
        assert_eq!(Address::decode(&bytes[1..]), None);
        assert_eq!(Address::decode(&[&bytes[..], &[0]].concat()), None);
        for (at, value) in [(18, 0), (18, 6), (19, 1), (28, 2)] {
            let mut wrong = bytes;
            wrong[at] = value;
            assert_eq!(Address::decode(&wrong), None, "byte {at} is {value}");
        }
    }

    #[test]
    fn a_directory_gives_back_what_it_keeps() {
        let words = ADDRESS.to_words();
        assert_eq!(words[0], 0x0807_0605_0403_0201);
        assert_eq!(Address::of_words(words), Some(ADDRESS));
        assert_eq!(Address::of_words(Words::default()), None);
        assert_eq!(Address::of_words(words.map(|word| word | 1 << 40)), None);
    }
}
