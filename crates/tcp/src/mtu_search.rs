//! Path MTU discovery: reports of routers (RFC 1191, RFC 8201), and the search by timeouts and
//! probes (RFC 4821).
//!
//! # Differs from Linux
//! - A report below Linux's minimum (`min_pmtu`, 552 octets) is accepted down to the 68 octets of
//!   RFC 1191: no router of a scenario fragments.
//! - The result applies to one connection, and does not expire after `mtu_expires`.
//! - The congestion control continues to count in segments of the size that the handshake agreed
//!   on.
//!
//! # Not implemented
//! - Delaying segments before a probe: a probe has the size of data yet to be sent (RFC 4821 §7.4).

use std::ops::Range;

use anabranch_core::units::{Duration, Instant};

use crate::policy::MtuDiscovery;
use anabranch_wire::{
    segment::{HEADERS, TIMESTAMPS_SIZE},
    seq::Seq,
};

/// The least MTU of a path (RFC 1191 §3).
const LEAST_MTU: u32 = 68;
/// Consecutive timeouts that indicate a black hole (Linux: `tcp_retries1`).
const SUSPICIOUS: u16 = 3;
/// The MSS from which probes search upward (Linux: `tcp_base_mss`),
const BASE_MSS: u32 = 1024;
/// and the least one (Linux: `tcp_mtu_probe_floor`).
const LEAST_MSS: u32 = 48;
/// A range of fewer octets is not searched (Linux: `tcp_probe_threshold`).
const THRESHOLD: u32 = 8;
/// Time after which the search begins again (Linux: `tcp_probe_interval`).
const INTERVAL: Duration = Duration::from_secs(600);
/// Full segments that must follow a probe, so that its loss is detected (RFC 4821 §7.4).
const FOLLOWERS: u64 = 4;

/// The search for the largest segment that the path carries.
#[derive(Debug)]
pub(crate) struct MtuSearch {
    mode: MtuDiscovery,
    range: Option<Box<SearchRange>>,
}

/// Sizes in octets of payload.
#[derive(Debug, Clone)]
struct SearchRange {
    /// The size that the ends agreed on.
    full: u32,
    /// The path carries this much,
    low: u32,
    /// and no more than this.
    high: u32,
    /// The octets of the probe that is outstanding.
    probe: Option<Range<Seq>>,
    /// When the last search ended.
    ended: Instant,
}

/// Result of a round trip for the search.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Round {
    /// A probe has arrived: segments have this size from here on.
    pub(crate) size: Option<u32>,
    /// The next probe may be sent.
    pub(crate) probes: bool,
}

/// Room for a probe.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ProbeRoom {
    pub(crate) smss: u32,
    pub(crate) cwnd: u64,
    pub(crate) in_flight: u64,
    /// Octets that the peer's window and the send buffer permit to be sent.
    pub(crate) unsent: u64,
}

impl MtuSearch {
    pub(crate) const fn new(mode: MtuDiscovery) -> Self {
        Self { mode, range: None }
    }

    /// Whether timeouts may indicate a black hole.
    #[inline]
    pub(crate) const fn suspects(&self) -> bool {
        self.mode.suspects()
    }

    /// A router did not carry a segment over a link of this MTU (RFC 1191 §6.4, RFC 8201 §5.4).
    /// Returns the largest payload that fits; `None` if reports are ignored.
    pub(crate) fn on_packet_too_big(&mut self, mtu: u32, timestamps: bool) -> Option<u32> {
        if !self.mode.hears() {
            return None;
        }
        let options = if timestamps { TIMESTAMPS_SIZE } else { 0 };
        let most = mtu.max(LEAST_MTU) - HEADERS - options;
        if let Some(range) = &mut self.range {
            range.low = range.low.min(most);
            range.high = range.high.min(most);
            range.probe = None;
        }
        Some(most)
    }

    /// Starts the search when the connection is open. Returns the first size, if probes search from
    /// the start.
    pub(crate) fn begin(&mut self, smss: u32) -> Option<u32> {
        (self.mode == MtuDiscovery::Probing).then(|| self.search_from(BASE_MSS.min(smss), smss))
    }

    fn search_from(&mut self, low: u32, smss: u32) -> u32 {
        let range = self.range.get_or_insert_with(|| {
            Box::new(SearchRange {
                full: smss,
                low,
                high: smss,
                probe: None,
                ended: Instant::START,
            })
        });
        range.low = low;
        range.high = range.high.max(low);
        range.probe = None;
        low
    }

    /// The retransmission timer has expired for the `expiries`-th time, and the first segment has
    /// `payload` octets: full segments may vanish in a black hole (RFC 4821 §7.7). Returns the size
    /// of segments from here on, if it changes.
    pub(crate) fn on_timeout(&mut self, expiries: u16, payload: u32, smss: u32) -> Option<u32> {
        if expiries < SUSPICIOUS {
            return None;
        }
        let low = match &self.range {
            Some(range) if smss <= range.low => range.low / 2,
            Some(range) => range.low,
            None => BASE_MSS,
        };
        let low = low.max(LEAST_MSS);
        (payload > low && smss > low).then(|| self.search_from(low, smss))
    }

    /// Ends a round trip: the probe has arrived, or the next one may be sent.
    #[cold]
    pub(crate) fn on_round(&mut self, now: Instant, una: Seq) -> Round {
        let mut round = Round {
            size: None,
            probes: false,
        };
        let Some(range) = &mut self.range else {
            return round;
        };
        if let Some(probe) = range.probe.take_if(|probe| una >= probe.end) {
            range.low = u32::try_from(probe.end.since(probe.start)).unwrap_or(range.low);
            round.size = Some(range.low);
        }
        if range.probe.is_some() {
            return round;
        }
        if range.high < range.low.saturating_add(THRESHOLD) {
            if range.ended == Instant::START {
                range.ended = now;
            }
            if now.saturating_since(range.ended) < INTERVAL || range.low >= range.full {
                return round;
            }
            range.high = range.full;
            range.ended = Instant::START;
        }
        round.probes = true;
        round
    }

    /// Size of the next probe, if the windows have room for it and enough data follows (RFC 4821
    /// §7.4).
    pub(crate) fn probe_size(&self, room: &ProbeRoom) -> Option<u32> {
        let range = self.range.as_ref()?;
        let size = range.low + (range.high - range.low).div_ceil(2);
        let needed = u64::from(size) + FOLLOWERS * u64::from(room.smss);
        let fits = range.probe.is_none()
            && size > room.smss
            && room.unsent >= needed
            && room.cwnd >= needed
            && room.cwnd.saturating_sub(room.in_flight) >= u64::from(size);
        fits.then_some(size)
    }

    /// Notes a probe that is being sent.
    pub(crate) fn on_probe_sent(&mut self, probe: Range<Seq>) {
        if let Some(range) = &mut self.range {
            range.probe = Some(probe);
        }
    }

    /// Takes the outstanding probe when a recovery begins, because it has not arrived.
    pub(crate) fn take_lost_probe(&mut self) -> Option<Range<Seq>> {
        if !self.suspects() {
            return None;
        }
        let range = self.range.as_mut()?;
        let probe = range.probe.take()?;
        range.high = u32::try_from(probe.end.since(probe.start))
            .unwrap_or(range.high)
            .saturating_sub(1)
            .max(range.low);
        Some(probe)
    }
}
