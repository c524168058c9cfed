//! Autotuned buffers (dynamic right-sizing).
//!
//! Receiver (Fisk and Feng, "Dynamic right-sizing in TCP", LACSI 2001; Linux:
//! `tcp_moderate_rcvbuf`): the data that the application reads in a round trip indicates the
//! sender's window. The receiver offers twice that, so that it never limits the sender. While the
//! amounts grow, the offer grows by twice their growth in addition: it is three times the need of a
//! sender that doubles its window. The window grows towards the offer by twice the length of each
//! segment, with SACK also of one beyond a gap, up to the point where the buffer still has room for
//! the segment. Each segment that makes it grow is acknowledged at once: at the start of a flow
//! hundreds of segments are, until the window has reached several times cwnd.
//!
//! Measured with Linux 6.18, on captures of windows that the sender's slow start met: 131,072
//! octets of memory offer 80,512 to segments of 1,448 octets; 21 segments in a round trip after 11
//! then offer 117 (2 · 21 · (1 + 2 · 10 / 11) less one), 40 after 21 offer 223 and 80 after 40
//! offer 479.
//!
//! Sender: the send buffer is twice the congestion window (Linux: `tcp_wmem`). Neither buffer
//! shrinks.
//!
//! Data beyond a gap is delivered after the segment that fills the gap. If that segment ends a
//! round trip, this data counts in the next one, as for an application that reads segment by
//! segment. Data unread at the end of a round trip does not count in it. Measured with Linux 6.18
//! (`tcpi_rcv_space`) with a program that reads on a path that reorders: 16 segments read in a
//! round trip while three more were unread count as 13, 32 while two were unread as 30.
//!
//! Data beyond a gap and unread data occupy the buffer, and the window offered ends at the end of
//! the buffer. An in-order segment occupies the buffer before the window grows by it, a segment
//! beyond a gap after that. The first loss after the window has grown therefore lets it grow by one
//! segment more, to the whole buffer. From then on an acknowledgment of unread data could offer
//! less than the one before it, and waits until the data has been read
//! ([`Receiver::acks_wait_for_read`](crate::policy::Receiver::acks_wait_for_read)). Measured
//! likewise on captures of a flow with losses: windows of 7,015 · 512 octets before and 7,018 · 512
//! after the first loss.
//!
//! The receiver's round-trip time is the age of the timestamp echo in a segment, so it includes a
//! pause of the sender. Each echo is used once. A sample below the estimate replaces it, and a
//! higher one has a weight of an eighth: a pause adds at most an eighth of its length, however many
//! segments follow it, and the next echo removes it again. Measured with Linux 6.18
//! (`tcpi_rcv_rtt`): from 19 ms to 146 ms after a pause of 1 s, to 274 ms after one of 2 s, by six
//! segments with the same echo; a round trip later it is gone.
//!
//! Without timestamps a sample is the time in which a whole window arrives: data beyond the window
//! offered leaves after an acknowledgment has arrived at the sender (Fisk and Feng). The sample is
//! an upper bound, so it only lowers the estimate.
//!
//! The limits count payload. Linux counts memory: a receive buffer (`tcp_rmem`) offers a part of
//! its size, which was fixed while `tcp_adv_win_scale` was in force and has been measured since:
//! five eighths for segments of 1,448 octets from a TUN device.
//!
//! # Differs from Linux
//! - In Linux, segments that are not full measure no round trip.
//! - Overhead is a constant; Linux measures it per connection.
//! - Until the send buffer has reached its limit, it limits the application only: twice the window
//!   is never less than the window permits.
//!
//! # Not implemented
//! - Memory pressure (`tcp_mem`).

use anabranch_core::{
    body::Body,
    units::{Duration, Instant},
};

use super::Receiver;
use crate::clock::timestamp;
use anabranch_wire::segment::Segment;

/// Measurements of the receiver.
#[derive(Debug)]
pub(super) struct Tuner {
    /// Round-trip time measured by the receiver; zero before the first sample.
    rtt: Duration,
    /// The echo last measured.
    echo: Option<u32>,
    /// Without timestamps: start of the current sample, and the octets received at its end.
    window_since: Instant,
    window_end: u64,
    /// Start of the current measurement.
    since: Instant,
    /// Octets that the application had taken by then.
    before: u64,
    /// Largest amount taken in an earlier measurement, or the assumed amount before the first.
    last: u64,
    /// Target of the window.
    target: u64,
    /// First window, from which it grows even if the buffer holds less.
    first: u64,
    /// Octets that the current segment delivered by filling a gap, and the target at that time. The
    /// acknowledgment is sent before the application reads: the octets still occupy the buffer, and
    /// the target has not grown (measured).
    delivered: u64,
    target_before_read: u64,
    /// Length of the last segment.
    segment: u64,
}

impl Default for Tuner {
    fn default() -> Self {
        Self {
            rtt: Duration::ZERO,
            echo: None,
            window_since: Instant::NEVER,
            window_end: 0,
            since: Instant::NEVER,
            before: 0,
            last: 0,
            target: 0,
            first: 0,
            delivered: 0,
            target_before_read: 0,
            segment: 0,
        }
    }
}

/// Segments assumed taken before the first measurement: an initial window (RFC 6928). If ten
/// segments exceed the window offered, no sender can deliver them, so the assumption is at most
/// half of that window.
const FIRST_TAKEN: u64 = 10;

impl Tuner {
    /// Processes the echo of a segment that arrived at `tick` of the timestamp clock.
    #[inline]
    fn sample_echo(&mut self, tick: u32, echo: u32) {
        if self.echo.replace(echo) != Some(echo) {
            let ticks = tick.wrapping_sub(echo);
            // Below the clock's granularity, or no echo yet.
            self.sample(Duration::from_millis(u64::from(ticks.clamp(1, 10_000))));
        }
    }

    /// Processes a sample of the round-trip time.
    fn sample(&mut self, rtt: Duration) {
        self.rtt = if self.rtt.is_zero() || rtt < self.rtt {
            rtt
        } else {
            self.rtt - self.rtt / 8 + rtt / 8
        };
    }

    /// Processes an in-order segment without an echo, after which `received` octets have arrived and
    /// `window` more are offered.
    #[inline]
    fn sample_window(&mut self, now: Instant, received: u64, window: u64) {
        if self.window_since != Instant::NEVER {
            if received < self.window_end {
                return;
            }
            // Zero is no sample.
            let whole = now
                .saturating_since(self.window_since)
                .max(Duration::from_micros(1));
            if self.rtt.is_zero() || whole < self.rtt {
                self.rtt = whole;
            }
        }
        // The first window keeps its edge even if the buffer holds less.
        let end = received.saturating_add(window.max(self.first));
        (self.window_since, self.window_end) = (now, end);
    }

    /// Starts the first measurement of a connection with segments of `smss` octets and a window of
    /// `offered`.
    fn start(&mut self, now: Instant, target: u64, (smss, offered): (u64, u64)) {
        (self.since, self.target, self.first) = (now, target, offered);
        self.last = (FIRST_TAKEN * smss).min(offered / 2).max(1);
    }

    /// Returns the window to offer at the end of a round trip in which the application took more
    /// than in any before. `taken` is the total it has taken. `unread` octets of the round trip are
    /// deducted, and `spare` is added to twice the amount.
    #[inline]
    fn measure(&mut self, now: Instant, taken: u64, unread: u64, spare: u64) -> Option<u64> {
        if self.rtt.is_zero() || now.saturating_since(self.since) < self.rtt {
            return None;
        }
        let copied = (taken - self.before).saturating_sub(unread);
        (self.since, self.before) = (now, taken);
        let last = self.last;
        if copied <= last {
            return None;
        }
        self.last = copied;
        let doubled = 2 * copied + spare;
        let growth = u128::from(doubled) * u128::from(copied - last) / u128::from(last);
        Some(doubled.saturating_add(u64::try_from(2 * growth).unwrap_or(u64::MAX)))
    }
}

impl<B: Body> Receiver<B> {
    /// Sets the window that follows the SYN, once the options are agreed on.
    pub(crate) fn fit_first_window(&mut self) {
        let segment = u64::from(self.smss);
        if !self.agreed.scaling {
            self.window = self.window.min(65_535);
        } else if self.agreed.tuned && self.settings.receiver.reserves_a_segment() {
            if self.window > 2 * segment {
                self.window = (self.window - segment).max(2 * segment);
            }
        } else {
            // So that the window field expresses the window exactly.
            self.window &= !((1 << self.agreed.scale) - 1);
        }
    }

    /// Starts autotuning of the window when the connection is established.
    pub(crate) fn start_tuning(&mut self, now: Instant) {
        if self.agreed.tuned {
            let start = self.settings.receiver.tuning_start(u64::from(self.smss));
            let target = self.most_tuned(start);
            let first = (u64::from(self.smss), self.window);
            self.cold.extras().tuner.start(now, target, first);
            // The buffer holds fewer octets of short segments than were offered: the edge stays
            // where it is.
            self.window = self.window.min(target);
        }
    }

    /// Returns `window`, limited to the largest that can be offered.
    fn most_tuned(&self, window: u64) -> u64 {
        let most = if self.agreed.scaling {
            self.settings.receive_window_bytes()
        } else {
            self.settings.receive_window_bytes().min(65_535)
        };
        window.min(most)
    }

    /// Takes a sample of the round-trip time from the echo in a segment with data.
    #[inline]
    pub(crate) fn sample_echo(&mut self, now: Instant, segment: &Segment<B>) {
        if let Some(timestamps) = segment.timestamps
            && self.agreed.timestamps
        {
            let tuner = &mut self.cold.extras().tuner;
            tuner.sample_echo(timestamp(now), timestamps.echo);
        }
    }

    /// Without timestamps: takes a sample from an in-order segment that has been delivered.
    #[inline]
    pub(super) fn sample_window(&mut self, now: Instant) {
        if !self.agreed.timestamps {
            let (received, window) = (self.stats.delivered_bytes, self.window);
            let tuner = &mut self.cold.extras().tuner;
            tuner.sample_window(now, received, window);
        }
    }

    /// Updates the tuner for a segment of the steady state, which has just been delivered.
    #[inline(never)]
    pub(crate) fn tune_in_order(&mut self, now: Instant, segment: &Segment<B>) {
        self.sample_echo(now, segment);
        self.sample_window(now);
        self.grow_receive_window(segment, self.occupied(segment));
        self.tune_receive_window(now, self.stats.delivered_bytes);
    }

    /// Measures in-order data, if the application reads it at once.
    #[inline]
    pub(crate) fn tune_receive_window(&mut self, now: Instant, taken: u64) {
        if self.auto_read {
            let unread = self.stats.delivered_bytes - taken;
            self.on_taken(now, taken, unread);
        }
    }

    /// The application has taken `taken` octets in total, and `unread` more are available.
    #[inline]
    pub(super) fn on_taken(&mut self, now: Instant, taken: u64, unread: u64) {
        let unread = if self.settings.receiver.accounts_for_buffer() {
            unread
        } else {
            0
        };
        let spare = self.settings.receiver.spare_segments() * u64::from(self.smss);
        let measured = self.cold.extras().tuner.measure(now, taken, unread, spare);
        if let Some(window) = measured {
            // Data beyond a gap occupies room that the sender needs.
            let waiting = self
                .cold
                .receive
                .as_ref()
                .filter(|_| self.settings.receiver.adds_data_beyond_gap())
                .and_then(|receive| receive.end())
                .map_or(0, |end| end.since(self.nxt));
            let window = self.most_tuned(window.saturating_add(waiting));
            let tuner = &mut self.cold.extras().tuner;
            tuner.target = tuner.target.max(window);
        }
    }

    /// Octets of the buffer that are occupied, including this in-order segment.
    pub(crate) fn occupied(&self, segment: &Segment<B>) -> u64 {
        self.beyond() + self.readable().max(u64::from(segment.body.len()))
    }

    /// A segment that arrived while there were gaps delivered `octets`.
    pub(super) fn note_delivered(&mut self, octets: u64) {
        if self.agreed.tuned && self.settings.receiver.accounts_for_buffer() {
            let tuner = &mut self.cold.extras().tuner;
            (tuner.delivered, tuner.target_before_read) = (octets, tuner.target);
            self.filled = octets > 0;
        }
    }

    /// Octets beyond gaps, if they occupy the buffer.
    pub(super) fn beyond(&self) -> u64 {
        match &self.cold.receive {
            Some(receive) if self.settings.receiver.accounts_for_buffer() => receive.beyond(),
            _ => 0,
        }
    }

    /// Grows the window for a segment with data, while `occupied` octets of the buffer are in use.
    /// Returns whether it has grown.
    #[inline]
    pub(crate) fn grow_receive_window(&mut self, segment: &Segment<B>, occupied: u64) -> bool {
        let len = u64::from(segment.body.len());
        let tuner = &mut self.cold.extras().tuner;
        // The longer of this segment and the one before it.
        let known = std::mem::replace(&mut tuner.segment, len).max(len);
        let (target, first) = (tuner.target.saturating_sub(occupied), tuner.first);
        let grows = self.window < target;
        if grows {
            self.window = target.min(self.window.max(first) + 2 * known);
            self.advertised = false;
            // While the window grows, each segment is acknowledged, so that the sender is informed.
            self.ack.once_at_once();
        }
        grows
    }

    /// Whether an acknowledgment now would offer less than the last one did, until the application
    /// reads.
    pub(super) fn wants_a_read(&self) -> bool {
        let field = self.offer().div_ceil(1 << self.agreed.scale);
        self.agreed.tuned && !self.auto_read && field < u64::from(self.field)
    }

    /// Window that an acknowledgment offers now.
    pub(super) fn offer(&self) -> u64 {
        let unread = self.readable();
        if !self.agreed.tuned || !self.settings.receiver.accounts_for_buffer() {
            return self.window.saturating_sub(unread);
        }
        // The buffer also holds data beyond a gap; the edge already offered stays.
        let (room, delivered) = match self.cold.extras.as_ref().map(|extras| &extras.tuner) {
            Some(tuner) if tuner.delivered > 0 => (tuner.target_before_read, tuner.delivered),
            Some(tuner) => (tuner.target, 0),
            None => (u64::MAX, 0),
        };
        let occupied = unread.max(delivered) + self.beyond();
        self.window.min(room.saturating_sub(occupied))
    }

    /// Round-trip time measured by the receiver; zero before the first sample or without
    /// measurement.
    pub(super) fn receive_rtt(&self) -> Duration {
        self.cold
            .extras
            .as_ref()
            .map_or(Duration::ZERO, |extras| extras.tuner.rtt)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMSS: u64 = 1_000;

    fn tuner(rtt: Duration) -> Tuner {
        let mut tuner = Tuner::default();
        tuner.start(Instant::START, 65_536, (SMSS, 65_536));
        tuner.sample(rtt);
        tuner
    }

    /// Windows offered after round trips that take in `copied`.
    fn offers(copied: &[u64]) -> Vec<Option<u64>> {
        let mut tuner = tuner(Duration::from_millis(100));
        let mut taken = 0;
        (1..)
            .zip(copied)
            .map(|(round, copied)| {
                let half = tuner.measure(Instant::from_millis(100 * round - 50), taken, 0, 0);
                assert_eq!(half, None, "nothing has come");
                taken += copied;
                tuner.measure(Instant::from_millis(100 * round), taken, 0, 0)
            })
            .collect()
    }

    /// As measured: an eighth of a pause, whatever arrives after it with the same echo, and none of
    /// it after the next echo.
    #[test]
    fn a_pause_is_one_sample() {
        let mut tuner = Tuner::default();
        for echo in 0..20 {
            tuner.sample_echo(100 + echo, echo);
        }
        assert_eq!(tuner.rtt, Duration::from_millis(100));
        for late in 0..6 {
            tuner.sample_echo(2100 + 20 + late, 20);
        }
        assert_eq!(tuner.rtt, Duration::from_millis(100 + 2000 / 8));
        tuner.sample_echo(121, 21);
        assert_eq!(tuner.rtt, Duration::from_millis(100));
    }

    /// As measured with segments of 1,448 octets: 11, 21, 40 and 80 of them in a round trip.
    #[test]
    fn a_sender_that_doubles_is_offered_three_times_the_double() {
        assert_eq!(
            offers(&[10_000, 20_000, 40_000]),
            [None, Some(120_000), Some(240_000)]
        );
        let offers = offers(&[11_000, 21_000, 40_000, 80_000]);
        assert_eq!(
            offers,
            [Some(26_400), Some(118_362), Some(224_760), Some(480_000)]
        );
    }

    /// Seven segments of 8,948 octets fill the first window; it cannot hold ten.
    #[test]
    fn a_window_of_few_long_segments_grows_once_it_is_filled() {
        for smss in [6_000, 8_948, 32_000, 65_483] {
            let mut tuner = Tuner::default();
            tuner.start(Instant::START, 65_536, (smss, 65_536));
            tuner.sample(Duration::from_millis(100));
            let filled = 65_536 / smss * smss;
            let offered = tuner.measure(Instant::from_millis(100), filled, 0, 0);
            assert!(offered >= Some(2 * filled), "{smss}: {offered:?}");
        }
    }

    #[test]
    fn a_steady_sender_is_offered_twice_its_window() {
        // A tenth more than before, twice that, and two tenths on top.
        assert_eq!(
            offers(&[100_000, 110_000, 110_000, 50_000]),
            [Some(3_800_000), Some(264_000), None, None]
        );
    }
}
