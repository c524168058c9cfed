//! Source addresses that the other end may use inside the tunnel.

use core::net::IpAddr;

use crate::inner::Prefix;

/// A set of addresses. By default it contains all addresses.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Sources {
    /// Disjoint ranges, first and last address, in ascending order; `None` for all addresses.
    ranges: Option<Vec<[IpAddr; 2]>>,
}

impl Sources {
    /// The addresses of these ranges, each with its first and last address.
    #[must_use]
    pub fn of(ranges: impl IntoIterator<Item = [IpAddr; 2]>) -> Self {
        let mut all: Vec<[IpAddr; 2]> = ranges.into_iter().collect();
        all.sort_unstable();
        let mut disjoint: Vec<[IpAddr; 2]> = Vec::with_capacity(all.len());
        for [first, last] in all {
            match disjoint.last_mut() {
                Some([_, end]) if first <= *end => *end = last.max(*end),
                _ => disjoint.push([first, last]),
            }
        }
        Self {
            ranges: Some(disjoint),
        }
    }

    /// Whether the set contains an address.
    #[must_use]
    pub fn contains(&self, address: IpAddr) -> bool {
        let Some(ranges) = &self.ranges else {
            return true;
        };
        let after = ranges.partition_point(|[first, _]| *first <= address);
        let candidate = after.checked_sub(1).and_then(|at| ranges.get(at));
        candidate.is_some_and(|[_, last]| address <= *last)
    }
}

impl From<Vec<Prefix>> for Sources {
    /// All addresses if the list is empty.
    fn from(prefixes: Vec<Prefix>) -> Self {
        if prefixes.is_empty() {
            return Self::default();
        }
        Self::of(prefixes.iter().map(Prefix::range))
    }
}

#[cfg(test)]
mod tests {
    use super::Sources;
    use core::net::IpAddr;

    fn at(text: &str) -> IpAddr {
        text.parse().expect("an address")
    }

    #[test]
    fn a_set_contains_the_addresses_of_its_ranges() {
        let range = |first: &str, last: &str| [at(first), at(last)];
        let sources = Sources::of([
            range("10.9.0.8", "10.9.0.15"),
            range("10.0.0.0", "10.8.255.255"),
            range("10.9.0.12", "10.9.0.20"),
            range("fd00::1", "fd00::1"),
        ]);
        let inside = [
            "10.0.0.0",
            "10.8.255.255",
            "10.9.0.8",
            "10.9.0.20",
            "fd00::1",
        ];
        let outside = [
            "9.255.255.255",
            "10.9.0.7",
            "10.9.0.21",
            "fd00::",
            "::ffff:10.0.0.1",
        ];
        assert!(inside.into_iter().all(|text| sources.contains(at(text))));
        assert!(!outside.into_iter().any(|text| sources.contains(at(text))));
    }

    #[test]
    fn no_range_contains_nothing_and_the_default_everything() {
        assert!(!Sources::of([]).contains(at("10.0.0.1")));
        assert!(Sources::default().contains(at("10.0.0.1")));
        assert!(Sources::from(Vec::new()).contains(at("::")));
    }
}
