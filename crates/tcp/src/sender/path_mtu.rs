//! Path MTU discovery: what routers report (RFC 1191, RFC 8201), and what timeouts and probes show (RFC 4821).
//!
//! # Differs from Linux
//! - A report below the floor of Linux (`min_pmtu`, 552 octets) counts down to the 68 octets of RFC 1191: no router of a
//!   scenario fragments.
//! - What was learned concerns one connection, and is not forgotten after `mtu_expires`.
//! - The congestion control goes on counting in segments of the size that the handshake agreed on.
//!
//! # Not implemented
//! - Segments before a probe are not held back, so a probe has the size of what is yet to be sent (RFC 4821 §7.4).

use anabranch_core::{
    body::Body,
    units::{Duration, Instant},
};

use super::{Retransmit, Sender};
use crate::{
    departure::Departure,
    policy::MtuDiscovery,
    receiver::Receiver,
    recovery::Phase,
    scoreboard::Record,
    segment::{HEADERS, Segment, TIMESTAMPS_SIZE},
    seq::Seq,
};

/// The least MTU of a path (RFC 1191 §3).
const LEAST_MTU: u32 = 68;
/// Timeouts in a row that are taken for a black hole (Linux: `tcp_retries1`).
const SUSPICIOUS: u16 = 3;
/// The MSS from which probes search upward (Linux: `tcp_base_mss`),
const BASE_MSS: u32 = 1024;
/// and the least one (Linux: `tcp_mtu_probe_floor`).
const LEAST_MSS: u32 = 48;
/// A range of fewer octets is not searched (Linux: `tcp_probe_threshold`).
const THRESHOLD: u32 = 8;
/// After so much time the search begins again (Linux: `tcp_probe_interval`).
const INTERVAL: Duration = Duration::from_secs(600);
/// Full segments that are to follow a probe, so that its loss is noticed (RFC 4821 §7.4).
const FOLLOWERS: u64 = 4;

/// The search for the largest segment that the path carries. Sizes are octets of payload.
#[derive(Debug, Clone, Copy)]
pub(super) struct Search {
    /// What the ends agreed on.
    full: u32,
    /// The path carries this much,
    low: u32,
    /// and no more than this.
    high: u32,
    /// The octets of the probe that is outstanding.
    probe: Option<(Seq, Seq)>,
    /// When the last search ended.
    ended: Instant,
}

impl<B: Body> Sender<B> {
    /// A router did not carry the segment at `start` over a link of this MTU (RFC 1191 §6.4, RFC 8201 §5.4). One that is not
    /// outstanding was not ours (RFC 5927 §4).
    pub(crate) fn on_packet_too_big(&mut self, now: Instant, start: Seq, mtu: u32) -> bool {
        let ours = self.peer.una() <= start && start < self.nxt;
        if !ours || !self.settings.mtu_discovery.hears() {
            return false;
        }
        let most = mtu.max(LEAST_MTU) - self.headers();
        if let Some(search) = &mut self.cold.extras().search {
            search.low = search.low.min(most);
            search.high = search.high.min(most);
            search.probe = None;
        }
        self.lower_mss(now, most)
    }

    /// Octets of a full packet that are not payload.
    const fn headers(&self) -> u32 {
        if self.agreed.timestamps {
            HEADERS + TIMESTAMPS_SIZE
        } else {
            HEADERS
        }
    }

    /// Segments have `most` octets from here on, and larger ones that are outstanding are retransmitted in pieces. Whether that
    /// changes anything.
    fn lower_mss(&mut self, now: Instant, most: u32) -> bool {
        if most >= self.smss {
            return false;
        }
        self.resize_segments(most);
        self.refuse_above(now, most);
        true
    }

    /// What is outstanding and larger is retransmitted in pieces at once; cwnd stays (RFC 1191 §6.5).
    fn refuse_above(&mut self, now: Instant, most: u32) {
        let cut = self.board.refuse_above(most);
        if cut.is_empty() {
            return;
        }
        if self.rated {
            for (number, pieces) in cut {
                self.cold.extras().rate.split(number, pieces);
            }
        }
        self.wake = true;
        self.restart_retransmission_timer(now);
    }

    /// The connection is open: where probes search from the start, segments are small at first.
    pub(crate) fn begin_mtu_search(&mut self) {
        if self.settings.mtu_discovery == MtuDiscovery::Probing {
            self.search_from(BASE_MSS.min(self.smss));
        }
    }

    fn search_from(&mut self, low: u32) {
        let full = self.smss;
        let search = self.cold.extras().search.get_or_insert(Search {
            full,
            low,
            high: full,
            probe: None,
            ended: Instant::START,
        });
        search.low = low;
        search.high = search.high.max(low);
        search.probe = None;
        self.resize_segments(low);
    }

    /// Segments have `smss` octets from here on, by which bursts and pieces of writes are measured anew.
    fn resize_segments(&mut self, smss: u32) {
        self.smss = smss;
        if let Some(extras) = &mut self.cold.extras {
            extras.piece_end = None;
        }
        self.forget_train();
    }

    /// The retransmission timer has expired, and everything outstanding is marked lost: full segments may vanish in a black hole
    /// (RFC 4821 §7.7).
    pub(super) fn suspect_black_hole(&mut self, now: Instant) {
        if !self.settings.mtu_discovery.suspects() {
            return;
        }
        self.is_probe_loss(now);
        if self.retries.expiries() < SUSPICIOUS {
            return;
        }
        let full = self.board.front().map_or(0, Record::payload);
        let low = match self.cold.extras.as_ref().and_then(|extras| extras.search) {
            Some(search) if self.smss <= search.low => search.low / 2,
            Some(search) => search.low,
            None => BASE_MSS,
        };
        let low = low.max(LEAST_MSS);
        if full <= low || self.smss <= low {
            return;
        }
        self.search_from(low);
        self.refuse_above(now, low);
    }

    fn search_state(&mut self) -> Option<&mut Search> {
        self.cold.extras.as_mut()?.search.as_mut()
    }

    /// A round trip is over: the probe has arrived, or the next may leave.
    #[cold]
    pub(super) fn search_mtu(&mut self, now: Instant) {
        let una = self.peer.una();
        let Some(search) = self.search_state() else {
            return;
        };
        if let Some((start, end)) = search.probe {
            if una < end {
                return;
            }
            search.probe = None;
            search.low = u32::try_from(end.since(start)).unwrap_or(search.low);
            let low = search.low;
            self.resize_segments(low);
        }
        let Some(search) = self.search_state() else {
            return;
        };
        if search.high < search.low.saturating_add(THRESHOLD) {
            if search.ended == Instant::START {
                search.ended = now;
            }
            if now.saturating_since(search.ended) < INTERVAL || search.low >= search.full {
                return;
            }
            search.high = search.full;
            search.ended = Instant::START;
        }
        if self.retransmit == Retransmit::Nothing {
            self.retransmit = Retransmit::MtuProbe;
        }
    }

    /// A probe leaves, if the windows have room for it and enough data follows (RFC 4821 §7.4).
    pub(super) fn probe_mtu(
        &mut self,
        now: Instant,
        cwnd: u64,
        rcv: &mut Receiver<B>,
        place: &mut Segment<B>,
    ) -> Option<Departure> {
        let search = self.cold.extras.as_ref()?.search?;
        let size = search.low + (search.high - search.low).div_ceil(2);
        let needed = u64::from(size) + FOLLOWERS * u64::from(self.smss);
        let quiet = self.recovery.phase == Phase::Open
            && self.board.is_plain()
            && self.recovery.dup_acks == 0
            && search.probe.is_none();
        let room = cwnd.saturating_sub(self.board.in_flight());
        let unsent = self.edge().min(self.buffer.end()).since(self.nxt);
        if !quiet || size <= self.smss || unsent < needed || room < u64::from(size) || cwnd < needed
        {
            return None;
        }
        let start = self.nxt;
        let departure = self.transmit_new(now, size, rcv, place);
        let probe = Some((start, start + u64::from(size)));
        if let Some(search) = &mut self.cold.extras().search {
            search.probe = probe;
        }
        Some(departure)
    }

    /// A recovery begins. Whether all that is missing is a probe, whose loss says nothing about congestion (RFC 4821 §7.6).
    pub(super) fn is_probe_loss(&mut self, now: Instant) -> bool {
        let (una, most) = (self.peer.una(), self.smss);
        let lost = self.board.lost();
        let Some(search) = self
            .cold
            .extras
            .as_mut()
            .and_then(|extras| extras.search.as_mut())
        else {
            return false;
        };
        let Some((start, end)) = search.probe.take() else {
            return false;
        };
        let size = end.since(start);
        search.high = u32::try_from(size)
            .unwrap_or(search.high)
            .saturating_sub(1)
            .max(search.low);
        self.refuse_above(now, most);
        una == start && lost <= size
    }
}
