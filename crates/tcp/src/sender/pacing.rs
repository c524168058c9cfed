//! When paced data may leave: a control's own rate, or a multiple of cwnd ÷ srtt.
//!
//! Data leaves in bursts of about a millisecond at the rate, as a stack does that hands large segments to the network card;
//! the next burst waits until this one would have left at the rate. Time not used earns nothing, but a TSO burst
//! ([`Segmentation`](crate::policy::Segmentation)) that leaves late takes as much less time, half of it at least.
//!
//! # Differs from Linux
//! - Retransmissions leave one at a time; those of a burst that is lost as a whole leave as one there.
//! - Slow start is where cwnd is below ssthresh.
//! - The first flight leaves in pairs, however short the round trip.
//! - Where PSH hangs on the ends of writes (`send_autotuning_start`), these are of 128 KiB, whatever the application writes.

use anabranch_core::{
    body::Body,
    units::{Bytes, Duration, Instant, Rate},
};

use super::Sender;
use anabranch_congestion::CongestionControl;

/// Octets of a burst at most: the largest segment that a network card splits.
pub(super) const MAX_BURST: u64 = 65_536;

/// How long a paced burst takes at the rate, in microseconds.
pub(super) const BURST_US: u16 = 1_000;

/// The rate in slow start, in percent of cwnd ÷ srtt (Linux: `tcp_pacing_ss_ratio`).
const SLOW_START_RATIO: u32 = 200;

/// The rate in congestion avoidance, in percent of cwnd ÷ srtt (Linux: `tcp_pacing_ca_ratio`).
const AVOIDANCE_RATIO: u32 = 120;
/// Octets of the first piece of what an application writes into a buffer that is small at first; later ones are as large as the largest burst.
const FIRST_PIECE: u64 = 83_200;
/// Half of the largest window that a SYN-ACK can offer: pieces of what is written before any other was offered are no larger.
const EARLY_PIECE: u64 = 32_767;
/// Octets of a write of an application that writes as much as it can: what `cat` and live applications of ours write.
pub(super) const WRITE: u64 = 131_072;
/// Segments that are handed over as one where the rate would ask for fewer (Linux: `tcp_min_tso_segs`).
pub(super) const SHORTEST_TRAIN: u8 = 2;
/// Not known any more: an acknowledgment has changed the rate.
const UNKNOWN_TRAIN: u8 = 1;
/// Of what is handed over as one there is so much in a second (Linux: `tcp_tso_rtt_log` in ip-sysctl.rst).
const TRAINS_PER_S: u64 = 1024;
/// A hundredth of the nanoseconds that one of them stands for, for ratios in hundredths.
const NANOS_PER_HUNDRED_TRAINS: u64 = 1_000_000_000 / TRAINS_PER_S / 100;
/// 64 KiB are added, halved for every 2⁹ µs of the least round-trip time (likewise: 9).
const HALVED_EVERY_NS: u64 = 512_000;

/// As many octets as make whole segments of `smss`, one at least.
const fn whole(octets: u64, smss: u64) -> u64 {
    let segments = octets / smss;
    (if segments > 0 { segments } else { 1 }) * smss
}

impl<B: Body> Sender<B> {
    /// The rate to send at, if there is one yet.
    pub(crate) fn pacing_rate(&self) -> Option<Rate> {
        if let Some(rate) = self.control.pacing_rate() {
            return Some(rate);
        }
        if !self.settings.pacing {
            return None;
        }
        self.nominal_rate()
    }

    /// The rate at which a window leaves in a round trip, with what room pacing gives it to grow.
    fn nominal_rate(&self) -> Option<Rate> {
        let (window, ratio) = self.paced_window();
        let rate = Rate::from_bytes_per(window, self.rtt.srtt())?;
        Rate::new(u64::try_from(u128::from(rate.bits_per_s()) * u128::from(ratio) / 100).ok()?)
    }

    /// The window that leaves in a round trip, and by how many hundredths of its rate.
    fn paced_window(&self) -> (Bytes, u32) {
        let cwnd = self.control.cwnd();
        let slow_start = self
            .control
            .ssthresh()
            .is_none_or(|ssthresh| cwnd < ssthresh);
        let ratio = if slow_start {
            SLOW_START_RATIO
        } else {
            AVOIDANCE_RATIO
        };
        // A window that has just been reduced does not stop what is already in flight.
        (cwnd.max(Bytes::new(self.board.in_flight())), ratio)
    }

    /// How many segments are handed over as one, at the rate as it is now
    /// ([`Segmentation`](crate::policy::Segmentation)).
    #[inline]
    pub(super) fn train_limit(&mut self) -> u8 {
        if self.longest_train == UNKNOWN_TRAIN {
            self.measure_train();
        }
        self.longest_train
    }

    #[inline(never)]
    fn measure_train(&mut self) {
        let by_rate = if let Some(rate) = self.control.pacing_rate() {
            rate.bits_per_s() / 8 / TRAINS_PER_S
        } else {
            let (window, ratio) = self.paced_window();
            let window = window.get().saturating_mul(u64::from(ratio));
            window
                .saturating_mul(NANOS_PER_HUNDRED_TRAINS)
                .checked_div(self.rtt.srtt().as_nanos())
                .unwrap_or(0)
        };
        let min_rtt = self.rtt.min_rtt();
        let by_rtt = u32::try_from(min_rtt.as_nanos() / HALVED_EVERY_NS)
            .ok()
            .filter(|_| !min_rtt.is_zero())
            .and_then(|halvings| MAX_BURST.checked_shr(halvings))
            .unwrap_or(0);
        let segments = by_rate.saturating_add(by_rtt).min(MAX_BURST) / u64::from(self.smss);
        self.longest_train = u8::try_from(segments)
            .unwrap_or(u8::MAX)
            .max(SHORTEST_TRAIN);
    }

    /// The rate may be another one from now on.
    #[inline]
    pub(super) const fn forget_train(&mut self) {
        if self.longest_train > 0 {
            self.longest_train = UNKNOWN_TRAIN;
        }
    }

    /// A segment is about to leave, after which the window has room for another one or not: whether it is the
    /// last of those that are handed over as one.
    #[inline]
    pub(super) fn ends_train(&mut self, now: Instant, another: bool) -> bool {
        if self.last_sent != now {
            self.train = 0;
        }
        self.train += 1;
        let full = self.train >= self.longest_train;
        let ends = full || (self.train > 1 && !another);
        if full || !another {
            self.train = 0;
        }
        ends
    }

    /// The same of the last segment of a piece. Of a buffer that is large at first, in which the next piece stands ready, one that would
    /// leave by itself takes segments of that one along where there is room for them. Where there is none it has PSH, if its piece has
    /// ([`Self::is_pushed`]).
    pub(super) fn ends_piece(&mut self, now: Instant, another: bool) -> bool {
        let at_once = self.settings.send_autotuning_start.get();
        let stands_ready = at_once > EARLY_PIECE;
        let begins = self.last_sent != now || self.train == 0;
        if stands_ready && begins && another {
            return self.ends_train(now, true);
        }
        let ends = self.ends_train(now, false);
        ends || stands_ready && self.is_pushed()
    }

    /// Whether the piece has PSH that ends with the next segment. Of those written before the peer has offered more than with its SYN one
    /// has it that ends more than half of that window after the last that has, or in which a write ends, whatever is added to it then;
    /// later ones have it.
    fn is_pushed(&self) -> bool {
        let smss = u64::from(self.smss);
        let (begun, early) = (
            u64::from(self.settings.initial_cwnd) * smss,
            whole(EARLY_PIECE, smss),
        );
        let sent = self.nxt.since(self.cold.first_octet);
        if sent >= self.later_pieces(begun, early) {
            return true;
        }
        let end_behind = |octets: u64| match octets.checked_sub(begun) {
            Some(beyond) => begun + beyond.div_ceil(early) * early,
            None => begun,
        };
        let last = end_behind(sent + 1);
        // Whatever came before the last write ended does not matter any more.
        let mut asked = last / WRITE * WRITE;
        let mut end = end_behind(asked.max(1));
        let mut pushed = asked > 0;
        loop {
            if end - asked > EARLY_PIECE {
                (asked, pushed) = (end, true);
            }
            if end >= last {
                return pushed;
            }
            (end, pushed) = (end + early, false);
        }
    }

    /// Where the first piece begins that was not written before the peer had offered more than with its SYN: `begun` octets leave at once, and
    /// pieces of `early` octets follow.
    fn later_pieces(&self, begun: u64, early: u64) -> u64 {
        let at_once = self.settings.send_autotuning_start.get();
        begun + at_once.saturating_sub(begun).div_ceil(early) * early
    }

    /// Octets of the piece of what the application writes that is being sent, as far as they have not left: full
    /// segments.
    #[inline]
    pub(super) fn piece_left(&mut self) -> u64 {
        let nxt = self.nxt;
        let left = match self.cold.extras().piece_end {
            Some(end) if nxt < end => end.since(nxt),
            _ => {
                let left = self.measure_piece();
                self.cold.extras().piece_end = Some(nxt + left);
                left
            }
        };
        debug_assert_eq!(left, self.measure_piece(), "SND.NXT goes forward alone");
        left
    }

    /// The same from the lengths of all pieces. As much as a large buffer holds at first is written before the peer has
    /// offered more than with its SYN.
    #[inline(never)]
    fn measure_piece(&self) -> u64 {
        let smss = u64::from(self.smss);
        let sent = self.nxt.since(self.cold.first_octet);
        let mut first = FIRST_PIECE.div_ceil(smss) * smss;
        let at_once = self.settings.send_autotuning_start.get();
        if at_once > EARLY_PIECE {
            // What leaves at once makes room in the piece that it is of, and that is filled up.
            let (begun, early) = (
                u64::from(self.settings.initial_cwnd) * smss,
                whole(EARLY_PIECE, smss),
            );
            if sent < at_once {
                return match sent.checked_sub(begun) {
                    Some(beyond) => early - beyond % early,
                    None => begun - sent,
                };
            }
            first = self.later_pieces(begun, early);
        }
        let further = whole(MAX_BURST, smss);
        match sent.checked_sub(first) {
            Some(beyond) => further - beyond % further,
            None => first - sent,
        }
    }

    /// Whether `len` octets must wait; if so, the deadline is set.
    #[inline(never)]
    pub(super) fn is_held_back(&mut self, now: Instant, len: u32) -> bool {
        // A TSO burst ends with the last segment that could leave at once.
        let is_tso = self.settings.segmentation.is_tso();
        let extras = self.cold.extras();
        let is_over = is_tso && extras.burst_at != now;
        let held = now < self.paced_from
            && (is_over || extras.burst < u64::from(len))
            && self.pacing_rate().is_some();
        if held {
            self.paced_until = self.paced_from;
        }
        held
    }

    /// `len` octets leave.
    #[inline(never)]
    pub(super) fn pace(&mut self, now: Instant, len: u32) {
        let Some(rate) = self.pacing_rate() else {
            return;
        };
        let begins = now >= self.paced_from;
        if begins {
            let late = now - self.paced_from;
            self.paced_from = now;
            let most = (rate * Duration::from_micros(u64::from(self.cold.burst_us)))
                .get()
                .min(MAX_BURST);
            let extras = self.cold.extras();
            extras.late = late;
            extras.burst = most.max(2 * u64::from(self.smss));
        }
        let len = u64::from(len);
        let mut time = Bytes::new(len) / rate;
        let extras = self.cold.extras();
        // A segment that leaves before its time, such as a tail loss probe, is not late.
        if self.settings.segmentation.is_tso() && (begins || extras.burst > 0) {
            let less = extras.late.min(time / 2);
            extras.late = extras.late - less;
            time = time - less;
        }
        (extras.burst, extras.burst_at) = (extras.burst.saturating_sub(len), now);
        self.paced_from = self.paced_from.saturating_add(time);
    }

    /// `len` octets leave as a burst of one segment.
    pub(super) fn pace_alone(&mut self, now: Instant, len: u32) {
        self.pace(now, len);
        self.cold.extras().burst = 0;
    }
}
