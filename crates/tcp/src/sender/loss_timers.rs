//! The timers of RACK-TLP (RFC 8985 §6.3, §7.2). Each runs ahead of the retransmission timer and
//! shares its deadline with it.

use anabranch_core::{
    body::Body,
    units::{Duration, Instant},
};

use super::{Retransmit, Sender, timers::Timer};
use crate::{
    ack::next_tick,
    cause::RetransmitCause,
    departure::Departure,
    receiver::Receiver,
    recovery::tlp::{Probing, Tlp},
};
use anabranch_wire::segment::Segment;

/// So much longer than it is to last a timer of RACK or TLP is set for by a clock that ticks
/// ([`Timers`](crate::policy::Timers)),
const SLACK: Duration = Duration::from_millis(2);
/// and what ends with a tick may have begun with part of one.
const BEGUN: u64 = 1;

impl<B: Body> Sender<B> {
    /// A probe leaves (RFC 8985 §7.3).
    pub(super) fn probe_tail(
        &mut self,
        now: Instant,
        rcv: &mut Receiver<B>,
        place: &mut Segment<B>,
    ) -> Departure {
        self.stats.probes = self.stats.probes.wrapping_add(1);
        let new = self.sendable();
        let outgoing = match new {
            Some(len) => self.transmit_new(now, len, rcv, place),
            None => self.retransmit(now, self.board.len() - 1, RetransmitCause::Tlp, rcv, place),
        };
        if let Some(watch) = &mut self.cold.watch {
            watch.tlp.sent(self.nxt, new.is_none());
            self.probing = watch.tlp.probing();
        }
        self.restart_retransmission_timer(now);
        outgoing
    }

    /// The retransmission timer has been set.
    #[inline(never)]
    pub(super) fn note_retransmission_timer(&mut self) {
        if self.agreed.aged() {
            self.postpone_retransmission_timer();
        }
        if let Some(watch) = &mut self.cold.watch {
            watch.rto_at = self.timer_at;
        }
    }

    /// A segment not sent before has left: the probe waits for its acknowledgment, too (RFC 8985
    /// §7.2).
    #[inline]
    pub(super) fn after_sending(&mut self, now: Instant) {
        match self.timer {
            Timer::Off | Timer::Persist | Timer::TimeWait => {
                self.restart_retransmission_timer(now);
                self.start_probe_timer(now);
            }
            Timer::Retransmit => self.start_probe_timer(now),
            Timer::Probe => {
                // Most often the acknowledgment that let it leave has set the timer at this very
                // time. With the second segment the receiver no longer delays.
                if self.board.len() == 2
                    || self.timer_at < now.saturating_add(self.rtt.srtt().saturating_mul(2))
                {
                    self.start_probe_timer(now);
                }
            }
            Timer::Reorder => {}
        }
    }

    /// The probe timer runs ahead of the retransmission timer, if a probe is called for (RFC 8985
    /// §7.2).
    #[inline(never)]
    pub(super) fn start_probe_timer(&mut self, now: Instant) {
        let wanted = self.recovery.phase.repairs_nothing()
            && self.board.is_plain()
            && !self.board.is_empty()
            && self.probing != Probing::UnderWay;
        let Some(watch) = self.cold.watch.as_ref().filter(|_| wanted) else {
            return;
        };
        let lone = self.board.len() == 1;
        let pto = Tlp::pto(self.rtt.srtt(), lone);
        self.timer = Timer::Probe;
        self.timer_at = self.with_tick(now, pto).min(watch.rto_at);
    }

    /// When a timer of RACK or TLP ends that is to last so long.
    pub(super) fn with_tick(&self, now: Instant, lasts: Duration) -> Instant {
        let tick = self.settings.timer_tick();
        if tick.is_zero() {
            return now.saturating_add(lasts);
        }
        let ticks = (lasts + SLACK).as_picos().div_ceil(tick.as_picos());
        next_tick(now, tick, ticks.saturating_add(BEGUN))
    }

    /// The reordering timer runs ahead of the retransmission timer (RFC 8985 §6.3), or no longer.
    pub(super) fn start_reordering_timer(&mut self, at: Option<Instant>) {
        if !matches!(
            self.timer,
            Timer::Retransmit | Timer::Reorder | Timer::Probe
        ) {
            return;
        }
        let Some(watch) = &self.cold.watch else {
            return;
        };
        let keeps_probing = self.timer == Timer::Probe
            && self.recovery.phase.repairs_nothing()
            && self.board.is_plain();
        match at {
            Some(at) if at < watch.rto_at => {
                self.timer = Timer::Reorder;
                self.timer_at = at;
            }
            _ if keeps_probing => {}
            _ => {
                self.timer = Timer::Retransmit;
                self.timer_at = watch.rto_at;
            }
        }
    }

    /// The reordering timer has expired.
    pub(crate) fn on_reordering_timeout(&mut self, now: Instant) {
        self.timer = Timer::Retransmit;
        if let Some(watch) = &self.cold.watch {
            self.timer_at = watch.rto_at;
        }
        if self.agreed.aged() {
            self.detect_by_age(now, 0);
            return;
        }
        if self.detect_by_time(now, 0, false) > 0 {
            let in_flight = self.board.in_flight();
            let smss = u64::from(self.smss);
            if let Some(watch) = &mut self.cold.watch
                && let Some(pace) = &mut watch.pace
            {
                // Nothing was delivered, so no more than the retransmission that begins it.
                pace.limit(in_flight + smss);
            }
        }
    }

    /// A round-trip time has been measured: the next probe may leave, unless one is under way.
    #[cold]
    pub(super) fn note_measured(&mut self) {
        if let Some(watch) = &mut self.cold.watch {
            watch.tlp.on_measured();
            self.probing = watch.tlp.probing();
        }
    }

    /// The connection is open and its round-trip time is not known.
    #[cold]
    pub(crate) fn note_unmeasured_start(&mut self) {
        if let Some(watch) = &mut self.cold.watch {
            watch.tlp.on_unmeasured_start();
            self.probing = watch.tlp.probing();
        }
    }

    /// The probe timer has expired (RFC 8985 §7.3).
    pub(crate) fn on_probe_timeout(&mut self, now: Instant) {
        if self.probing != Probing::Free {
            self.restart_retransmission_timer(now);
            return;
        }
        self.timer = Timer::Retransmit;
        if let Some(watch) = &self.cold.watch {
            self.timer_at = watch.rto_at;
        }
        self.retransmit = Retransmit::Probe;
    }
}
