//! Buffers that grow with need: dynamic right-sizing.
//!
//! Receiver (Fisk and Feng, "Dynamic right-sizing in TCP", LACSI 2001; Linux:
//! `tcp_moderate_rcvbuf`): what the application takes in a round trip tells the sender's window, and
//! twice that is offered, so that the sender is never held back. While the amounts still grow, the
//! offer grows by twice their growth more, so that it is three times what a sender needs that
//! doubles its window. The window grows towards that by twice what a segment brings, in whatever
//! order, up to what leaves room for the segment itself, and each segment that makes it grow is
//! acknowledged at once: at the start of a flow hundreds of segments are acknowledged at once each,
//! until the window has reached several times cwnd.
//!
//! Measured with Linux 6.18, on captures of windows that the sender's slow start met:
//! 131,072 octets of memory offer 80,512 to segments of 1,448 octets; 21 segments in a round trip
//! after 11 then offer 117 (2 · 21 · (1 + 2 · 10 / 11) less one), 40 after 21 offer 223 and 80 after
//! 40 offer 479.
//! Sender: the send buffer is twice the congestion window (Linux: `tcp_wmem`). Neither shrinks.
//!
//! What has waited behind a gap is taken after the segment that fills it: where that one ends a round trip, the rest
//! counts in the next, as an application that reads segment by segment sees it. And as much as waits unread at the end of a round
//! trip does not count in it. Measured with Linux 6.18 (`tcpi_rcv_space`) by a program that reads on a path that
//! reorders: 16 segments read in a round trip while three more were there count as 13, 32 while two were as 30.
//!
//! What waits behind a gap, or unread, occupies the buffer: the window that is offered ends where the buffer does. A segment
//! in order takes its place in the buffer before the window grows by it, one beyond a gap after that. So the first loss
//! after the window has grown lets it grow by one segment more, to the whole buffer. From then on an acknowledgment of
//! what has not been read could offer less than the one before it, and waits until it has been read
//! ([`Receiver::acks_wait_for_read`](crate::policy::Receiver::acks_wait_for_read)). Measured likewise on captures of a
//! flow with losses: windows of 7,015 · 512 octets before and 7,018 · 512 after the first.
//!
//! The receiver's round-trip time is the age of the echo that a segment carries, so that a pause of the
//! sender counts as one. Each echo is taken once; a lower one than before is believed at once, a higher one with a
//! weight of an eighth: a pause adds an eighth of its length at most, however many segments come after it, and
//! the next echo takes it away again. Measured with Linux 6.18 (`tcpi_rcv_rtt`): from 19 ms to 146 ms after a pause
//! of 1 s, to 274 ms after one of 2 s, by six segments that carry the same echo; a round trip later it is gone.
//!
//! The limits count payload. Linux counts memory: a receive buffer (`tcp_rmem`) offers a part of
//! itself, which was fixed while `tcp_adv_win_scale` was in force and is measured since: five
//! eighths for segments of 1,448 octets from a TUN device.
//!
//! # Differs from Linux
//! - Segments that are not full measure no round trip there.
//! - Overhead is a constant; Linux measures it per connection.
//! - The send buffer limits the application alone until it has reached its limit: twice the window
//!   never holds back what the window permits.
//!
//! # Not implemented
//! - Memory pressure (`tcp_mem`).

use anabranch_core::{
    body::Body,
    units::{Duration, Instant},
};

use super::Receiver;
use crate::{clock::timestamp, rtt::RttEstimator};
use anabranch_wire::segment::Segment;

/// What the receiver measures.
#[derive(Debug)]
pub(super) struct Tuner {
    /// The round-trip time as the receiver sees it; zero before it is known.
    rtt: Duration,
    /// The echo that was measured last.
    echo: Option<u32>,
    /// The measurement under way began then.
    since: Instant,
    /// What had been taken by then.
    before: u64,
    /// The most that was taken in a measurement before, or what is assumed before there was one.
    last: u64,
    /// What the window offered grows to.
    target: u64,
    /// The window at first, from which it grows where the buffer holds less.
    first: u64,
    /// Octets that the current segment delivered by filling a gap, and the target then. Its acknowledgment leaves before the
    /// application reads: the octets still occupy the buffer, and the target has not grown (measured).
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

/// Before the first measurement as much is assumed to have been taken, in segments: an initial
/// window (RFC 6928). Of segments so long that ten of them exceed the window that is offered, no sender can deliver as many,
/// so half of that window is assumed at most.
const FIRST_TAKEN: u64 = 10;

impl Tuner {
    /// A segment carries this echo at this tick of the timestamp clock.
    #[inline]
    fn sample_echo(&mut self, tick: u32, echo: u32) {
        if self.echo.replace(echo) != Some(echo) {
            let ticks = tick.wrapping_sub(echo);
            // Below the clock's granularity, or no echo yet.
            self.sample(Duration::from_millis(u64::from(ticks.clamp(1, 10_000))));
        }
    }

    /// A sample of the round-trip time.
    fn sample(&mut self, rtt: Duration) {
        self.rtt = if self.rtt.is_zero() || rtt < self.rtt {
            rtt
        } else {
            self.rtt - self.rtt / 8 + rtt / 8
        };
    }

    /// The connection stands, with segments of `smss` and so much offered: the first measurement begins.
    fn start(&mut self, now: Instant, target: u64, (smss, offered): (u64, u64)) {
        (self.since, self.target, self.first) = (now, target, offered);
        self.last = (FIRST_TAKEN * smss).min(offered / 2).max(1);
    }

    /// `taken` octets have gone to the application so far, and `unread` more could: the window to offer, with `spare` octets more
    /// than twice as much, if that is more than before.
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
    /// The options are agreed on: the window that follows the SYN.
    pub(crate) fn fit_first_window(&mut self) {
        let segment = u64::from(self.smss);
        if !self.agreed.scaling {
            self.window = self.window.min(65_535);
        } else if self.agreed.tuned && self.settings.receiver.reserves_a_segment() {
            if self.window > 2 * segment {
                self.window = (self.window - segment).max(2 * segment);
            }
        } else {
            // So that what is offered can be told exactly.
            self.window &= !((1 << self.agreed.scale) - 1);
        }
    }

    /// The connection stands: the window offered may grow from here on.
    pub(crate) fn start_tuning(&mut self, now: Instant) {
        if self.agreed.tuned {
            let start = self.settings.receiver.tuning_start(u64::from(self.smss));
            let target = self.most_tuned(start);
            let first = (u64::from(self.smss), self.window);
            self.cold.extras().tuner.start(now, target, first);
            // Of short segments the buffer holds fewer octets than were offered: the edge stays, and moves no further.
            self.window = self.window.min(target);
        }
    }

    /// So much as can be offered.
    fn most_tuned(&self, window: u64) -> u64 {
        let most = if self.agreed.scaling {
            self.settings.receive_window_bytes()
        } else {
            self.settings.receive_window_bytes().min(65_535)
        };
        window.min(most)
    }

    /// The segment brings data: a sample of the round-trip time.
    #[inline]
    pub(crate) fn sample_receive_rtt(
        &mut self,
        now: Instant,
        segment: &Segment<B>,
        rtt: &RttEstimator,
    ) {
        let tuner = &mut self.cold.extras().tuner;
        if let Some(timestamps) = segment.timestamps
            && self.agreed.timestamps
        {
            tuner.sample_echo(timestamp(now), timestamps.echo);
        } else if tuner.rtt.is_zero() {
            // Without timestamps the handshake has to do.
            tuner.sample(rtt.srtt());
        }
    }

    /// A segment of the steady state, which has just been delivered: all that it tells the tuner.
    #[inline(never)]
    pub(crate) fn tune_in_order(&mut self, now: Instant, segment: &Segment<B>, rtt: &RttEstimator) {
        self.sample_receive_rtt(now, segment, rtt);
        self.grow_receive_window(segment, self.occupied(segment));
        self.tune_receive_window(now, self.stats.delivered_bytes);
    }

    /// Data came in order, and has been taken if the application takes everything at once.
    #[inline]
    pub(crate) fn tune_receive_window(&mut self, now: Instant, taken: u64) {
        if self.auto_read {
            let unread = self.stats.delivered_bytes - taken;
            self.on_taken(now, taken, unread);
        }
    }

    /// The application has taken so many octets in all, and so many more wait for it.
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
            // Data beyond a gap takes room that the sender needs.
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

    /// Octets of the buffer that are occupied, this segment among them, which has just come in order.
    pub(crate) fn occupied(&self, segment: &Segment<B>) -> u64 {
        self.beyond() + self.readable().max(u64::from(segment.body.len()))
    }

    /// A segment that came while there were gaps let so many octets be delivered.
    pub(super) fn note_delivered(&mut self, octets: u64) {
        if self.agreed.tuned && self.settings.receiver.accounts_for_buffer() {
            let tuner = &mut self.cold.extras().tuner;
            (tuner.delivered, tuner.target_before_read) = (octets, tuner.target);
            self.filled = octets > 0;
        }
    }

    /// Octets beyond gaps, as far as they occupy the buffer.
    pub(super) fn beyond(&self) -> u64 {
        match &self.cold.receive {
            Some(receive) if self.settings.receiver.accounts_for_buffer() => receive.beyond(),
            _ => 0,
        }
    }

    /// Data arrived, in whatever order, while so many octets occupied the buffer.
    #[inline]
    pub(crate) fn grow_receive_window(&mut self, segment: &Segment<B>, occupied: u64) {
        let len = u64::from(segment.body.len());
        let tuner = &mut self.cold.extras().tuner;
        // The peer's segments as known so far: a shorter one is noticed with the next.
        let known = std::mem::replace(&mut tuner.segment, len).max(len);
        let (target, first) = (tuner.target.saturating_sub(occupied), tuner.first);
        if self.window < target {
            self.window = target.min(self.window.max(first) + 2 * known);
            self.advertised = false;
            // While it grows, each segment is acknowledged, so that the sender learns of it.
            self.ack.once_at_once();
        }
    }

    /// Whether an acknowledgment now could not offer as much as the last one did, for want of room that reading makes.
    pub(super) fn wants_a_read(&self) -> bool {
        let field = self.offer().div_ceil(1 << self.agreed.scale);
        self.agreed.tuned && !self.auto_read && field < u64::from(self.field)
    }

    /// What an acknowledgment offers now.
    pub(super) fn offer(&self) -> u64 {
        let unread = self.readable();
        if !self.agreed.tuned || !self.settings.receiver.accounts_for_buffer() {
            return self.window.saturating_sub(unread);
        }
        // The buffer holds what waits beyond a gap as well; the edge that has been offered stays.
        let (room, delivered) = match self.cold.extras.as_ref().map(|extras| &extras.tuner) {
            Some(tuner) if tuner.delivered > 0 => (tuner.target_before_read, tuner.delivered),
            Some(tuner) => (tuner.target, 0),
            None => (u64::MAX, 0),
        };
        let occupied = unread.max(delivered) + self.beyond();
        self.window.min(room.saturating_sub(occupied))
    }

    /// The round-trip time as the receiver sees it; zero before it is known, or if it is not measured.
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

    /// Each round trip takes in `copied`; what is offered after it.
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

    /// As measured: an eighth of a pause, whatever comes after it with the same echo, and nothing of it after the next.
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

    /// Seven segments of 8,948 octets fill the window that is offered at first; ten are more than it holds.
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
    fn a_steady_sender_is_offered_twice_what_it_sends() {
        // A tenth more than before, twice that, and two tenths on top.
        assert_eq!(
            offers(&[100_000, 110_000, 110_000, 50_000]),
            [Some(3_800_000), Some(264_000), None, None]
        );
    }
}
