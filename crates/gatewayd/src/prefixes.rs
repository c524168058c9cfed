//! Longest-prefix match. Prefixes may contain each other; an address belongs to the longest prefix
//! that contains it.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::IpNet;

/// Values by prefix, stored as disjoint ranges of addresses.
#[derive(Debug)]
pub struct Longest<T> {
    ranges: Vec<Range<T>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Range<T> {
    first: IpAddr,
    last: IpAddr,
    value: T,
}

impl<T> Default for Longest<T> {
    fn default() -> Self {
        Self { ranges: Vec::new() }
    }
}

impl<T: Copy> Longest<T> {
    /// The value of each prefix. Of equal prefixes the first counts.
    pub fn of(prefixes: impl IntoIterator<Item = (IpNet, T)>) -> Self {
        let mut prefixes: Vec<(IpNet, T)> = prefixes.into_iter().collect();
        // A prefix precedes the prefixes that it contains.
        prefixes.sort_by_key(|(net, _)| (net.network(), net.prefix_len()));
        prefixes.dedup_by_key(|(net, _)| (net.network(), net.prefix_len()));
        let mut ranges = Vec::with_capacity(prefixes.len());
        let mut add = |first: Option<IpAddr>, last: Option<IpAddr>, value| {
            if let (Some(first), Some(last)) = (first, last)
                && first <= last
            {
                ranges.push(Range { first, last, value });
            }
        };
        // Prefixes that contain the current address, the longest last, and the first address
        // without a range.
        let mut open: Vec<(IpNet, T)> = Vec::new();
        let mut next = None;
        for (net, value) in prefixes {
            while let Some((outer, value)) = open.pop_if(|(outer, _)| !outer.contains(&net)) {
                add(next, Some(outer.broadcast()), value);
                next = after(outer.broadcast());
            }
            if let Some((_, value)) = open.last() {
                add(next, before(net.network()), *value);
            }
            next = Some(net.network());
            open.push((net, value));
        }
        while let Some((outer, value)) = open.pop() {
            add(next, Some(outer.broadcast()), value);
            next = after(outer.broadcast());
        }
        Self { ranges }
    }

    /// The value of an address.
    pub fn get(&self, address: IpAddr) -> Option<T> {
        let after = self.ranges.partition_point(|range| range.first <= address);
        let range = self.ranges.get(after.checked_sub(1)?)?;
        (address <= range.last).then_some(range.value)
    }

    /// The first and the last address of each range, with its value.
    pub fn ranges(&self) -> impl Iterator<Item = ([IpAddr; 2], T)> {
        let ranges = self.ranges.iter();
        ranges.map(|range| ([range.first, range.last], range.value))
    }
}

fn after(address: IpAddr) -> Option<IpAddr> {
    Some(match address {
        IpAddr::V4(address) => Ipv4Addr::from_bits(address.to_bits().checked_add(1)?).into(),
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits().checked_add(1)?).into(),
    })
}

fn before(address: IpAddr) -> Option<IpAddr> {
    Some(match address {
        IpAddr::V4(address) => Ipv4Addr::from_bits(address.to_bits().checked_sub(1)?).into(),
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits().checked_sub(1)?).into(),
    })
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use ipnet::{IpNet, Ipv4Net};
    use proptest::prelude::*;

    use super::Longest;

    fn longest(prefixes: &[&str]) -> Longest<usize> {
        let nets = prefixes.iter().map(|text| text.parse().expect("a prefix"));
        Longest::of(nets.zip(0..))
    }

    #[test]
    fn an_address_belongs_to_the_longest_prefix() {
        let table = longest(&[
            "0.0.0.0/0",
            "10.0.0.0/8",
            "10.1.0.0/16",
            "10.1.2.0/24",
            "10.1.2.3/32",
            "255.255.255.255/32",
            "fd00::/8",
            "fd00::/64",
        ]);
        for (address, value) in [
            ("9.255.255.255", Some(0)),
            ("10.0.0.0", Some(1)),
            ("10.1.1.255", Some(2)),
            ("10.1.2.2", Some(3)),
            ("10.1.2.3", Some(4)),
            ("10.1.2.4", Some(3)),
            ("10.1.3.0", Some(2)),
            ("10.2.0.0", Some(1)),
            ("11.0.0.0", Some(0)),
            ("255.255.255.254", Some(0)),
            ("255.255.255.255", Some(5)),
            ("fd00::1", Some(7)),
            ("fd00:0:0:1::", Some(6)),
            ("fe00::", None),
            ("::", None),
        ] {
            assert_eq!(
                table.get(address.parse().expect("it is one")),
                value,
                "{address}"
            );
        }
    }

    proptest! {
        /// A linear search over all prefixes finds the same.
        #[test]
        fn ranges_answer_as_a_linear_search(
            prefixes in prop::collection::vec((any::<u32>(), 0_u8..=32), 0..40),
            few in prop::collection::vec((0_u32..64, 26_u8..=32), 0..20),
            addresses in prop::collection::vec(any::<u32>(), 20),
        ) {
            let nets: Vec<Ipv4Net> = prefixes
                .into_iter()
                .chain(few)
                .map(|(bits, length)| Ipv4Net::new(bits.into(), length).expect("a length").trunc())
                .collect();
            let table = Longest::of(nets.iter().map(|&net| IpNet::from(net)).zip(0_usize..));
            let ends = nets.iter().flat_map(|net| {
                let ends = [net.network().to_bits(), net.broadcast().to_bits()];
                ends.into_iter().flat_map(|end| [end.wrapping_sub(1), end, end.wrapping_add(1)])
            });
            for bits in addresses.into_iter().chain(ends).chain([0, u32::MAX]) {
                let address = Ipv4Addr::from(bits);
                let found = nets.iter().enumerate().filter(|(_, net)| net.contains(&address));
                // The first of the longest.
                let found = found.rev().max_by_key(|(_, net)| net.prefix_len());
                prop_assert_eq!(table.get(address.into()), found.map(|(number, _)| number));
            }
            let ranges: Vec<_> = table.ranges().map(|(range, _)| range).collect();
            prop_assert!(ranges.windows(2).all(|pair| pair[0][1] < pair[1][0]));
        }
    }
}
