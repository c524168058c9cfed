//! Buffers that grow with need: dynamic right-sizing.
//!
//! Receiver (Fisk and Feng, "Dynamic right-sizing in TCP", LACSI 2001; Linux:
//! `tcp_moderate_rcvbuf`): the window offered begins at 64 KiB. What the application takes in a
//! round trip tells the sender's window, and twice that is offered, so that the sender is never
//! held back. While the amounts still grow, the sender will be as much further
//! by the time it sees the offer, so the offer grows by that factor, two at most, once more.
//! The window grows towards that by twice what a segment brings, and each segment that makes it
//! grow is acknowledged at once: measured with Linux 6.18, where at the start of a flow hundreds
//! of segments are acknowledged one by one, until the window has reached several times cwnd.
//! Sender: the send buffer is twice the congestion window (Linux: `tcp_wmem`). Neither shrinks.
//!
//! The receiver's round-trip time is the age of the echo that a segment carries, so that a pause of the
//! sender counts as one. Each echo is taken once, with a weight of an eighth: a pause adds an eighth of its
//! length at most, however many segments come after it, and the next echoes take it away again. Measured with
//! Linux 6.18 (`tcpi_rcv_rtt`): from 19 ms to 146 ms after a pause of 1 s, to 274 ms after one of 2 s, by six
//! segments that carry the same echo.
//!
//! The limits count payload. Linux counts memory: a receive buffer (`tcp_rmem`) offers about half of
//! itself, which was fixed while `tcp_adv_win_scale` was in force and is measured since.
//!
//! # Differs from Linux
//! - What a pause has added is gone after a round trip there, and fades with the echoes here. Segments that are
//!   not full measure nothing there.
//! - Overhead is a constant half; Linux measures it per connection.
//! - The send buffer limits the application alone until it has reached its limit: twice the window
//!   never holds back what the window permits.
//!
//! # Not implemented
//! - Memory pressure (`tcp_mem`).

use anabranch_core::units::{Duration, Instant};

use super::{Endpoint, header::timestamp};
use crate::{body::Body, cc::CongestionControl, tcp::segment::Segment};

/// The send buffer at first (`tcp_wmem`: 16 KiB).
const FIRST_SEND_BUFFER: u64 = 16_384;

/// What the receiver measures.
#[derive(Debug, Default)]
pub(super) struct Tuner {
    /// The round-trip time as the receiver sees it; zero before it is known.
    rtt: Duration,
    /// The echo that was measured last.
    echo: Option<u32>,
    /// The measurement under way: since when, and what had been taken then.
    since: Option<(Instant, u64)>,
    /// The most that was taken in a measurement before.
    last: u64,
    /// What the window offered grows to.
    target: u64,
}

impl Tuner {
    /// A segment carries this echo at this tick of the timestamp clock.
    fn sample_echo(&mut self, tick: u32, echo: u32) {
        if self.echo.replace(echo) != Some(echo) {
            let ticks = tick.wrapping_sub(echo);
            // Below the clock's granularity, or no echo yet.
            self.sample(Duration::from_millis(u64::from(ticks.clamp(1, 10_000))));
        }
    }

    /// A sample of the round-trip time.
    fn sample(&mut self, rtt: Duration) {
        self.rtt = if self.rtt.is_zero() {
            rtt
        } else {
            self.rtt - self.rtt / 8 + rtt / 8
        };
    }

    /// `taken` octets have gone to the application so far: the window to offer, if that is more
    /// than before.
    fn measure(&mut self, now: Instant, taken: u64) -> Option<u64> {
        let Some((since, before)) = self.since else {
            self.since = Some((now, taken));
            return None;
        };
        let copied = taken - before;
        let complete = !self.rtt.is_zero() && now.saturating_since(since) >= self.rtt;
        // After the first it may grow in the middle of a measurement already, for measurements and
        // the sender's round trips do not begin together.
        let grows = copied > self.last && (complete || self.last > 0);
        let window = grows.then(|| {
            let doubled = 2 * copied;
            if copied / 2 >= self.last {
                2 * doubled
            } else {
                doubled + doubled * (copied - self.last) / self.last
            }
        });
        if complete {
            self.since = Some((now, taken));
            self.last = self.last.max(copied);
        }
        window
    }
}

impl<B: Body> Endpoint<B> {
    /// Data arrived in order.
    #[inline(never)]
    pub(super) fn tune_receive_window(&mut self, now: Instant, segment: &Segment<B>) {
        let tuner = &mut self.cold.extras().tuner;
        if let Some(timestamps) = segment.timestamps
            && self.agreed.timestamps
        {
            tuner.sample_echo(timestamp(now), timestamps.echo);
        } else if tuner.rtt.is_zero() {
            // Without timestamps the handshake has to do.
            tuner.sample(self.rtt.srtt());
        }
        let measured = tuner.measure(now, self.stats.delivered_bytes);
        if let Some(window) = measured {
            let scale = self.agreed.rcv_scale;
            let most = if self.agreed.scaling {
                self.settings.receive_window_bytes()
            } else {
                self.settings.receive_window_bytes().min(65_535)
            };
            let window = window.min(most) >> scale << scale;
            let tuner = &mut self.cold.extras().tuner;
            tuner.target = tuner.target.max(window);
        }
        self.grow_receive_window(segment);
    }

    /// Data arrived, in whatever order.
    pub(super) fn grow_receive_window(&mut self, segment: &Segment<B>) {
        let target = self.cold.extras().tuner.target;
        if self.receive_window < target {
            let grown = self.receive_window + 2 * u64::from(segment.body.len());
            self.receive_window = grown.min(target);
            self.told = false;
            // While it grows, each segment is acknowledged, so that the sender learns of it.
            self.ack.at_once();
        }
    }

    /// The round-trip time as the receiver sees it; zero before it is known, or if it is not measured.
    pub(super) fn receive_rtt(&self) -> Duration {
        self.cold
            .extras
            .as_ref()
            .map_or(Duration::ZERO, |extras| extras.tuner.rtt)
    }

    /// Octets of the send buffer as far as it has grown.
    pub(super) fn send_space(&self) -> u64 {
        if !self.settings.send_autotuning {
            return self.send_buffer;
        }
        let wanted = 2 * self.control.cwnd().get();
        let before = self
            .cold
            .extras
            .as_ref()
            .map_or(0, |extras| extras.send_space);
        before
            .max(wanted)
            .max(FIRST_SEND_BUFFER)
            .min(self.send_buffer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each round trip takes in `copied`; what is offered after it.
    fn offers(copied: &[u64]) -> Vec<Option<u64>> {
        let mut tuner = Tuner::default();
        tuner.sample(Duration::from_millis(100));
        assert_eq!(tuner.measure(Instant::START, 0), None);
        let mut taken = 0;
        (1..)
            .zip(copied)
            .map(|(round, copied)| {
                let half = tuner.measure(Instant::from_millis(100 * round - 50), taken);
                assert_eq!(half, None, "nothing has come");
                taken += copied;
                tuner.measure(Instant::from_millis(100 * round), taken)
            })
            .collect()
    }

    /// As measured: an eighth of a pause, whatever comes after it with the same echo.
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
        for echo in 21..61 {
            tuner.sample_echo(100 + echo, echo);
        }
        assert!(tuner.rtt < Duration::from_millis(102));
    }

    #[test]
    fn a_sender_that_doubles_is_offered_the_double_of_the_double() {
        assert_eq!(
            offers(&[10_000, 20_000, 40_000]),
            [Some(40_000), Some(80_000), Some(160_000)]
        );
    }

    #[test]
    fn a_steady_sender_is_offered_twice_what_it_sends() {
        // A tenth more than before, twice that, and a tenth on top.
        assert_eq!(
            offers(&[100_000, 110_000, 110_000, 50_000]),
            [Some(400_000), Some(242_000), None, None]
        );
    }
}
