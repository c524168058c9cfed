//! What an end of a connection has announced, and whose a RST in its name is.

use crate::segment::Segment;

/// Whose a RST is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// The host's in whose name it is.
    Host,
    /// A device's on the path.
    Middlebox,
    /// The capture has no other packet of that host.
    Unknown,
}

impl Origin {
    /// Its name in results.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Host => "host",
            Self::Middlebox => "middlebox",
            Self::Unknown => "unknown",
        }
    }
}

/// What an end has announced.
#[derive(Debug, Default, Clone)]
pub(crate) struct Announced {
    pub(crate) syns: u32,
    pub(crate) scale: Option<u8>,
    /// Its SYN has no window scaling, as far as options were captured.
    pub(crate) lacks_scale: bool,
    pub(crate) has_sack: bool,
    pub(crate) fin: bool,
    pub(crate) rst: Option<u64>,
    /// The hop limits of its other packets, least and largest, and that of its RST.
    hops: Option<(u8, u8)>,
    rst_hops: Option<u8>,
    pub(crate) last_stamp: Option<u32>,
}

impl Announced {
    /// A RST in the name of this end.
    pub(crate) fn see_rst(&mut self, segment: &Segment) {
        self.rst.get_or_insert(segment.number);
        self.rst_hops.get_or_insert(segment.hop_limit);
    }

    /// Another packet of this end.
    pub(crate) fn see_hops(&mut self, hops: u8) {
        let seen = self.hops;
        self.hops = Some(seen.map_or((hops, hops), |(low, high)| (low.min(hops), high.max(hops))));
    }

    /// Whose the first RST in the name of this end is: a device on the path that sends one is another number of hops away.
    pub(crate) fn reset_origin(&self) -> Origin {
        match (self.rst_hops, self.hops) {
            (Some(hops), Some((low, high))) if hops < low || hops > high => Origin::Middlebox,
            (Some(_), Some(_)) => Origin::Host,
            _ => Origin::Unknown,
        }
    }
}
