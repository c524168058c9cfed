//! Timers: retransmission (RFC 6298 §5), persist (RFC 9293 §3.8.6.1), TIME-WAIT.
//!
//! The three exclude each other, so they share one deadline; the delayed acknowledgment has its
//! own ([`AckPolicy`](crate::ack::AckPolicy)).

use anabranch_core::{
    body::Body,
    units::{Bytes, Instant},
};

use super::{Retransmit, Sender};
use crate::{ack::next_tick, scoreboard::Record, seq::Seq};
use anabranch_congestion::Rto;

/// What the deadline is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Timer {
    Off,
    Retransmit,
    /// RACK's reordering timer (RFC 8985 §6.3); the retransmission timer comes later.
    Reorder,
    /// The probe timer (RFC 8985 §7.2), likewise.
    Probe,
    Persist,
    TimeWait,
}

impl<B: Body> Sender<B> {
    /// RFC 6298 (5.1), (5.3): the timer runs for one timeout from now.
    #[inline]
    pub(crate) fn restart_retransmission_timer(&mut self, now: Instant) {
        self.timer = Timer::Retransmit;
        self.timer_at = now.saturating_add(self.rtt.rto());
        if self.agreed.racked() | self.agreed.attended() {
            self.timer_at = self.timeout_from(now);
            self.note_retransmission_timer();
        }
    }

    /// When a timeout from now ends: with a coarse clock, with a tick.
    fn timeout_from(&self, now: Instant) -> Instant {
        if !self.settings.timers.count_ticks() {
            return now.saturating_add(self.rtt.rto());
        }
        let tick = self.settings.clock_tick;
        let ticks = self.rtt.rto().as_picos() / tick.as_picos();
        next_tick(now, tick, ticks.max(1))
    }

    /// The timeout counts from now on, while the reordering timer, which comes before it, goes on: what that waits for has
    /// nothing to do with what has just been retransmitted (RFC 8985 §6.3).
    pub(super) fn put_off_timeout(&mut self, now: Instant) {
        let at = self.timeout_from(now);
        if let Some(watch) = &mut self.cold.watch {
            watch.rto_at = at;
        }
    }

    #[inline]
    pub(crate) fn stop_timer(&mut self) {
        self.timer = Timer::Off;
        self.timer_at = Instant::NEVER;
    }

    /// The window is closed and nothing is outstanding that could open it.
    pub(crate) fn start_persist_timer(&mut self, now: Instant) {
        if self.timer == Timer::Off {
            self.timer = Timer::Persist;
            let interval = self
                .peer
                .probe_interval(self.rtt.rto(), self.settings.max_rto);
            self.timer_at = now.saturating_add(interval);
        }
    }

    pub(crate) fn start_time_wait(&mut self, now: Instant) {
        self.timer = Timer::TimeWait;
        self.timer_at = now.saturating_add(self.settings.time_wait);
    }

    /// The retransmission timer of an open connection has expired.
    pub(crate) fn on_retransmission_timeout(&mut self, now: Instant) {
        if self.retries.on_timeout(now, &self.settings) {
            return;
        }
        // The expiry that gives up retransmits nothing (Linux: `tcpi_total_rto` leaves it out).
        self.stats.timeouts += 1;
        // RFC 6298 (5.5)
        self.rtt.back_off(&self.settings.rto_bounds());
        // RFC 5681 §3.1: FlightSize before anything is retransmitted.
        let prior = self.recovery.phase;
        let reduced = prior.reduces() && !self.settings.window_rules.timeout_reduces_again();
        self.window.on_timeout(&Rto {
            now,
            in_flight: Bytes::new(self.flight_size_at_timeout()),
            // To a control the recovery's reduction is this one's first.
            consecutive: u32::from(self.retries.expiries()) + u32::from(reduced),
        });
        self.recovery.lose(self.nxt);
        if !self.lose_by_time(now) {
            self.board.mark_all_lost();
        }
        self.suspect_black_hole(now);
        self.watch_timeout(now, prior);
        // RFC 6298 (5.4)
        self.retransmit = Retransmit::FirstLost;
        self.pacer.release();
        // RFC 6298 (5.6)
        self.restart_retransmission_timer(now);
    }

    /// The retransmission timer has expired, and everything outstanding is marked lost: full segments may vanish in a black hole
    /// (RFC 4821 §7.7).
    fn suspect_black_hole(&mut self, now: Instant) {
        if !self.mtu.suspects() {
            return;
        }
        self.is_probe_loss(now);
        let payload = self.board.front().map_or(0, Record::payload);
        let expiries = self.retries.expiries();
        if let Some(low) = self.mtu.on_timeout(expiries, payload, self.smss) {
            self.resize_segments(low);
            self.split_segments(now, low);
        }
    }

    /// A recovery begins. Returns whether all that is missing is a probe, whose loss says nothing about congestion (RFC 4821 §7.6).
    pub(super) fn is_probe_loss(&mut self, now: Instant) -> bool {
        let Some(probe) = self.mtu.take_lost_probe() else {
            return false;
        };
        let lost = self.board.lost();
        self.split_segments(now, self.smss);
        self.peer.una() == probe.start && lost <= probe.end.since(probe.start)
    }

    /// A router did not carry the segment at `start` over a link of this MTU (RFC 1191 §6.4, RFC 8201 §5.4). One that is not
    /// outstanding was not ours (RFC 5927 §4). Returns whether segments are smaller from here on.
    pub(crate) fn on_packet_too_big(&mut self, now: Instant, start: Seq, mtu: u32) -> bool {
        if start < self.peer.una() || start >= self.nxt {
            return false;
        }
        let most = self.mtu.on_packet_too_big(mtu, self.agreed.timestamps);
        let Some(most) = most.filter(|most| *most < self.smss) else {
            return false;
        };
        self.resize_segments(most);
        self.split_segments(now, most);
        true
    }

    /// The connection is open: segments are small at first if probes search for the path MTU from the start.
    pub(crate) fn begin_mtu_search(&mut self) {
        if let Some(size) = self.mtu.begin(self.smss) {
            self.resize_segments(size);
        }
    }

    /// Segments have `smss` octets from here on, by which bursts and chunks are measured again.
    pub(super) fn resize_segments(&mut self, smss: u32) {
        self.smss = smss;
        self.queue.resize_chunks();
        self.pacer.on_rate_change();
    }

    /// Outstanding segments of more than `most` octets are retransmitted in pieces at once; cwnd stays (RFC 1191 §6.5).
    fn split_segments(&mut self, now: Instant, most: u32) {
        let cut = self.board.refuse_above(most);
        if cut.is_empty() {
            return;
        }
        for (number, pieces) in cut {
            self.window.split(number, pieces);
        }
        self.wake = true;
        self.restart_retransmission_timer(now);
    }

    /// Nothing more will be sent or retransmitted by itself.
    pub(crate) fn stop(&mut self) {
        self.stop_timer();
        self.pacer.release();
        self.retransmit = Retransmit::Nothing;
    }

    /// FlightSize (RFC 5681 §2), less what limited transmit sent (RFC 5681 §3.2 step 2).
    pub(super) const fn flight_size(&self) -> u64 {
        self.nxt
            .since(self.peer.una())
            .saturating_sub(self.recovery.limited as u64)
    }

    /// FlightSize as a timeout sees it. One segment whose retransmission was lost too holds SND.UNA
    /// back while a recovery goes on sending, so what SACK reports as arrived can be many windows;
    /// it is not in the network and says nothing about how much fits. Never less than cwnd leaves,
    /// if that much is outstanding: a recovery under way has reduced it already.
    fn flight_size_at_timeout(&self) -> u64 {
        let flight = self.flight_size();
        let missing = flight.saturating_sub(self.board.sacked());
        flight.min(missing.max(self.window.cwnd().get()))
    }
}
