//! Pacing and TSO bursts: transmission at a control's pacing rate, or at a multiple of cwnd ÷ srtt.
//!
//! Data is sent in bursts of about a millisecond at the rate, as by a stack that hands large
//! segments to the network card; the next burst waits until the time that this one takes at the
//! rate has passed. Unused time is lost, but the time of a late TSO burst
//! ([`Segmentation`](crate::policy::Segmentation)) is shortened by its lateness, to at least half.
//!
//! # Differs from Linux
//! - Retransmissions are sent individually; Linux retransmits a burst that is lost in full as one.
//! - Slow start is the state with cwnd below ssthresh.
//! - The first flight is sent in pairs, however short the round-trip time.

use anabranch_congestion::{CongestionControl, Control};
use anabranch_core::units::{Bytes, Duration, Instant, Rate};

use crate::{congestion_window::CongestionWindow, rtt::RttEstimator, settings::Settings};

/// Octets of a burst at most: the largest segment that a network card splits.
pub(crate) const MAX_BURST: u64 = 65_536;
/// Duration of a paced burst at the rate, in microseconds.
const BURST_US: u16 = 1_000;
/// The rate in slow start, in percent of cwnd ÷ srtt (Linux: `tcp_pacing_ss_ratio`).
const SLOW_START_RATIO: u32 = 200;
/// The rate in congestion avoidance, in percent of cwnd ÷ srtt (Linux: `tcp_pacing_ca_ratio`).
const AVOIDANCE_RATIO: u32 = 120;
/// Minimum length of a TSO burst in segments (Linux: `tcp_min_tso_segs`).
pub(crate) const SHORTEST_BURST: u8 = 2;
/// The length of TSO bursts is not known: an acknowledgment has changed the rate.
const UNKNOWN: u8 = 1;
/// TSO bursts in a second at the rate (Linux: `tcp_tso_rtt_log` in ip-sysctl.rst).
const BURSTS_PER_S: u64 = 1024;
/// A hundredth of the nanoseconds from one to the next, for ratios in hundredths.
const NANOS_PER_HUNDRED_BURSTS: u64 = 1_000_000_000 / BURSTS_PER_S / 100;
/// 64 KiB are added, halved for every 2⁹ µs of the least round-trip time (likewise: 9).
const HALVED_EVERY_NS: u64 = 512_000;

/// Inputs of the pacing rate.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RateBasis<'a> {
    pub(crate) window: &'a CongestionWindow,
    pub(crate) rtt: &'a RttEstimator,
    pub(crate) in_flight: u64,
    pub(crate) smss: u32,
}

impl RateBasis<'_> {
    /// Window sent per round trip, and the pacing ratio in percent.
    fn window(&self) -> (Bytes, u32) {
        let ratio = if self.window.is_slow_start() {
            SLOW_START_RATIO
        } else {
            AVOIDANCE_RATIO
        };
        // A window just reduced does not stop the data in flight.
        (self.window.cwnd().max(Bytes::new(self.in_flight)), ratio)
    }

    /// Rate of one window per round trip, times the pacing ratio, which gives it room to grow.
    fn nominal(&self) -> Option<Rate> {
        let (window, ratio) = self.window();
        let rate = Rate::from_bytes_per(window, self.rtt.srtt())?;
        Rate::new(u64::try_from(u128::from(rate.bits_per_s()) * u128::from(ratio) / 100).ok()?)
    }
}

/// State of pacing.
#[derive(Debug)]
pub(crate) struct Pacer {
    /// Pacing may delay data.
    active: bool,
    /// The stack paces, whatever the control.
    by_window: bool,
    is_tso: bool,
    /// Segments of the current TSO burst.
    train: u8,
    /// Segments of a TSO burst at most; 0 without TSO, [`UNKNOWN`] if it has to be measured.
    longest_train: u8,
    /// Duration of a paced burst at the rate, in microseconds.
    burst_us: u16,
    /// Time of the last transmission of data; [`Instant::NEVER`] before.
    last_sent: Instant,
    /// End of the delay by pacing; [`Instant::NEVER`] if no data is delayed.
    held_until: Instant,
    /// Time from which pacing permits the next data.
    next_at: Instant,
    /// Octets that may still be sent before their time ([`Self::pace`]).
    burst: u64,
    /// Time of the last paced segment.
    burst_at: Instant,
    /// Lateness of the current burst, minus the time recovered since.
    late: Duration,
}

impl Pacer {
    pub(crate) fn new(settings: &Settings, window: &CongestionWindow) -> Self {
        let is_tso = settings.segmentation.is_tso();
        let control = window.control();
        Self {
            active: settings.pacing
                || control.pacing_rate().is_some()
                || matches!(control, Control::Boxed(_)),
            by_window: settings.pacing,
            is_tso,
            train: 0,
            longest_train: if is_tso { SHORTEST_BURST } else { 0 },
            burst_us: control.wants().burst_us.unwrap_or(BURST_US),
            last_sent: Instant::NEVER,
            held_until: Instant::NEVER,
            next_at: Instant::START,
            burst: 0,
            burst_at: Instant::START,
            late: Duration::ZERO,
        }
    }

    /// Whether pacing may delay data.
    #[inline]
    pub(crate) const fn is_active(&self) -> bool {
        self.active
    }

    /// Time at which delayed data may be sent.
    #[inline]
    pub(crate) const fn deadline(&self) -> Instant {
        self.held_until
    }

    /// Ends the delay of data.
    pub(crate) const fn release(&mut self) {
        self.held_until = Instant::NEVER;
    }

    /// Whether segments are sent in TSO bursts.
    #[inline]
    pub(crate) const fn sends_bursts(&self) -> bool {
        self.longest_train > 0
    }

    /// Time of the last transmission of data; [`Instant::NEVER`] before.
    #[inline]
    pub(crate) const fn last_sent(&self) -> Instant {
        self.last_sent
    }

    /// Notes a transmission of data.
    #[inline]
    pub(crate) const fn on_sent(&mut self, now: Instant) {
        self.last_sent = now;
    }

    /// The rate to send at, if there is one yet.
    pub(crate) fn rate(&self, basis: &RateBasis<'_>) -> Option<Rate> {
        let own = basis.window.control().pacing_rate();
        own.or_else(|| basis.nominal().filter(|_| self.by_window))
    }

    /// Segments of a TSO burst at the current rate ([`Segmentation`](crate::policy::Segmentation)).
    #[inline]
    pub(crate) fn longest_burst(&mut self, basis: &RateBasis<'_>) -> u8 {
        if self.longest_train == UNKNOWN {
            self.measure_burst(basis);
        }
        self.longest_train
    }

    #[inline(never)]
    fn measure_burst(&mut self, basis: &RateBasis<'_>) {
        // A control without pacing has no rate, and pacing is off.
        let control = basis.window.control();
        let own = self.active.then(|| control.pacing_rate()).flatten();
        let by_rate = if let Some(rate) = own {
            rate.bits_per_s() / 8 / BURSTS_PER_S
        } else {
            let (window, ratio) = basis.window();
            let window = window.get().saturating_mul(u64::from(ratio));
            window
                .saturating_mul(NANOS_PER_HUNDRED_BURSTS)
                .checked_div(basis.rtt.srtt().as_nanos())
                .unwrap_or(0)
        };
        let min_rtt = basis.rtt.min_rtt();
        let by_rtt = u32::try_from(min_rtt.as_nanos() / HALVED_EVERY_NS)
            .ok()
            .filter(|_| !min_rtt.is_zero())
            .and_then(|halvings| MAX_BURST.checked_shr(halvings))
            .unwrap_or(0);
        let segments = by_rate.saturating_add(by_rtt).min(MAX_BURST) / u64::from(basis.smss);
        self.longest_train = u8::try_from(segments)
            .unwrap_or(u8::MAX)
            .max(SHORTEST_BURST);
    }

    /// The rate may have changed.
    #[inline]
    pub(crate) const fn on_rate_change(&mut self) {
        if self.longest_train > 0 {
            self.longest_train = UNKNOWN;
        }
    }

    /// Whether the next segment begins a TSO burst.
    #[inline]
    pub(crate) fn begins_burst(&self, now: Instant) -> bool {
        self.train == 0 || self.last_sent != now
    }

    /// Lets the next segment begin a TSO burst.
    #[inline]
    pub(crate) const fn end_burst(&mut self) {
        self.train = 0;
    }

    /// Counts a segment about to be sent. `another`: the window has room for one more after it.
    /// Returns whether it is the last of its TSO burst.
    #[inline]
    pub(crate) fn ends_burst(&mut self, now: Instant, another: bool) -> bool {
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

    /// Whether `len` octets must wait; if so, the deadline is set.
    #[inline(never)]
    pub(crate) fn is_held_back(&mut self, now: Instant, len: u32, basis: &RateBasis<'_>) -> bool {
        // A TSO burst ends with the last segment that can be sent immediately.
        let is_over = self.is_tso && self.burst_at != now;
        let held = now < self.next_at
            && (is_over || self.burst < u64::from(len))
            && self.rate(basis).is_some();
        if held {
            self.held_until = self.next_at;
        }
        held
    }

    /// Charges `len` octets that are being sent.
    #[inline(never)]
    pub(crate) fn pace(&mut self, now: Instant, len: u32, basis: &RateBasis<'_>) {
        let Some(rate) = self.rate(basis) else {
            return;
        };
        let begins = now >= self.next_at;
        if begins {
            self.late = now - self.next_at;
            self.next_at = now;
            let most = (rate * Duration::from_micros(u64::from(self.burst_us)))
                .get()
                .min(MAX_BURST);
            self.burst = most.max(2 * u64::from(basis.smss));
        }
        let len = u64::from(len);
        let mut time = Bytes::new(len) / rate;
        // A segment sent before its time, such as a tail loss probe, is not late.
        if self.is_tso && (begins || self.burst > 0) {
            let less = self.late.min(time / 2);
            self.late = self.late - less;
            time = time - less;
        }
        (self.burst, self.burst_at) = (self.burst.saturating_sub(len), now);
        self.next_at = self.next_at.saturating_add(time);
    }

    /// Charges `len` octets that are sent as a burst of one segment.
    pub(crate) fn pace_alone(&mut self, now: Instant, len: u32, basis: &RateBasis<'_>) {
        self.pace(now, len, basis);
        self.burst = 0;
    }
}
