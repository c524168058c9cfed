//! The congestion window: the control, the validation of its window (RFC 7661), round trips,
//! delivery-rate samples, and the log of changes.
//!
//! Loss recovery changes the window by the events of this type alone.

use anabranch_congestion::{
    Ack, Attached, Congestion, CongestionControl, Control, Idle, IdleRestart, RateSample,
    Recovered, Rto, Sent, Signal, Spurious, TimerLoss, Unvalidated,
    rate::{Delivery, RateSampler},
};
use anabranch_core::units::{Bytes, Duration, Instant};

use crate::{
    scoreboard::{Record, Scoreboard},
    settings::Settings,
    window_log::{WindowChange, WindowEvent},
    window_validation::Validation,
};
use anabranch_wire::seq::Seq;

/// The congestion window of a connection.
#[derive(Debug)]
#[expect(clippy::struct_excessive_bools, reason = "independent facts")]
pub(crate) struct CongestionWindow {
    control: Attached,
    /// Octets of the window reserved for packets other than data.
    reserved: u64,
    /// Data sent before this number was sent while cwnd was the limit.
    limited_until: Seq,
    /// Round trips counted, and the number whose acknowledgment ends the current one.
    round: u64,
    round_end: Seq,
    /// The control takes delivery-rate samples.
    is_rated: bool,
    /// Pauses keep the window while pipeACK indicates whether it is valid (RFC 7661).
    is_validated: bool,
    /// The window grows only while it limits the sender.
    grows_if_limited: bool,
    /// In slow start it grows as well if more than half of it was outstanding
    /// ([`WindowRules::grow_half_full`](crate::policy::WindowRules::grow_half_full)).
    grows_half_full: bool,
    measures: Option<Box<Measures>>,
}

/// Measurements that only some controls and stacks need.
#[derive(Debug, Default)]
struct Measures {
    rate: RateSampler,
    validation: Validation,
    log: Option<Vec<WindowEvent>>,
    /// Largest number of octets outstanding while something other than cwnd was the limit.
    most_unfilled: u64,
    /// One past the last octet outstanding at that time, whose acknowledgment ends that round trip.
    unfilled_until: Option<Seq>,
}

/// cwnd and ssthresh.
#[derive(Debug, Clone, Copy)]
pub(crate) struct WindowState {
    cwnd: Bytes,
    ssthresh: Option<Bytes>,
}

impl CongestionWindow {
    pub(crate) fn new(settings: &Settings, control: Control, iss: Seq) -> Self {
        Self {
            is_rated: control.wants().rate_samples,
            control: Attached::new(control),
            reserved: 0,
            limited_until: iss,
            round: 0,
            round_end: iss,
            is_validated: settings.idle_restart == IdleRestart::Rfc7661,
            grows_if_limited: settings.cwnd_validation,
            grows_half_full: settings.window_rules.grow_half_full(),
            measures: None,
        }
    }

    /// Replaces the control by one of the same kind for another MSS, before the connection is open.
    pub(crate) fn replace_control(&mut self, control: Control) {
        self.control = Attached::new(control);
    }

    fn measures(&mut self) -> &mut Measures {
        self.measures.get_or_insert_default()
    }

    pub(crate) const fn control(&self) -> &Control {
        self.control.control()
    }

    #[inline]
    pub(crate) fn cwnd(&self) -> Bytes {
        self.control.cwnd()
    }

    pub(crate) fn ssthresh(&self) -> Option<Bytes> {
        self.control.ssthresh()
    }

    pub(crate) fn is_slow_start(&self) -> bool {
        let cwnd = self.cwnd();
        self.ssthresh().is_none_or(|ssthresh| cwnd < ssthresh)
    }

    /// Octets of the window for data.
    #[inline]
    pub(crate) fn available(&self) -> u64 {
        self.cwnd().get().saturating_sub(self.reserved)
    }

    /// Sets the octets reserved for packets other than data. Returns whether they are fewer than
    /// before.
    pub(crate) const fn reserve(&mut self, octets: u64) -> bool {
        let fewer = octets < self.reserved;
        self.reserved = octets;
        fewer
    }

    /// When the control's timer expires.
    #[inline]
    pub(crate) const fn deadline(&self) -> Instant {
        self.control.deadline()
    }

    /// The control's timer may have expired.
    pub(crate) fn on_deadline(&mut self, now: Instant) {
        if now >= self.control.deadline() {
            self.control.on_timer(now);
        }
    }

    /// The connection opens with round trips counted from `una`.
    pub(crate) const fn open(&mut self, una: Seq) {
        self.limited_until = una;
        self.round_end = una;
    }

    /// See [`CongestionControl::on_lost_syns`].
    pub(crate) fn on_lost_syns(&mut self) {
        self.control.on_lost_syns();
    }

    /// Whether the control takes [`CongestionControl::on_sent`].
    pub(crate) const fn hears_sent(&self) -> bool {
        self.control.hears_sent()
    }

    #[inline]
    pub(crate) fn on_sent(&mut self, sent: &Sent) {
        self.control.on_sent(sent);
    }

    #[inline]
    pub(crate) fn on_ack(&mut self, ack: &Ack) {
        self.control.on_ack(ack);
    }

    /// As [`Self::on_ack`] on the hot path.
    #[inline]
    pub(crate) fn on_hot_ack(&mut self, ack: &Ack) {
        self.control.on_hot_ack(ack);
    }

    /// Round trips that have ended.
    #[inline]
    pub(crate) const fn round(&self) -> u64 {
        self.round
    }

    /// SND.UNA has moved to `una`. Returns whether a round trip has ended.
    #[inline]
    pub(crate) fn ends_round(&mut self, una: Seq, nxt: Seq) -> bool {
        let ends = una > self.round_end;
        if ends {
            self.round += 1;
            self.round_end = nxt;
        }
        ends
    }
}

/// Growth.
impl CongestionWindow {
    /// Data sent before `nxt` was limited by cwnd.
    #[inline]
    pub(crate) const fn on_limit(&mut self, nxt: Seq) {
        self.limited_until = nxt;
    }

    /// The number that [`Self::on_limit`] was last called with.
    #[inline]
    pub(crate) const fn limited_until(&self) -> Seq {
        self.limited_until
    }

    /// Whether some of the `acked` octets before `una` were sent while cwnd was the limit, or
    /// growth does not depend on that.
    #[expect(
        clippy::inline_always,
        reason = "measured: it is a step of the hot path"
    )]
    #[inline(always)]
    pub(crate) fn is_limiting(
        &mut self,
        now: Instant,
        una: Seq,
        acked: u64,
        srtt: Duration,
    ) -> bool {
        !self.grows_if_limited
            || una < self.limited_until.saturating_add(acked)
            || (self.is_validated && self.validate(now, srtt))
            || self.is_half_full()
    }

    /// Whether more than half of the window was outstanding at once in slow start. A control that
    /// sends by a model of the path has no slow start.
    fn is_half_full(&self) -> bool {
        let Some(measures) = self.measures.as_ref().filter(|_| !self.is_rated) else {
            return false;
        };
        self.cwnd().get() < 2 * measures.most_unfilled && self.is_slow_start()
    }

    /// Something other than cwnd holds data back.
    pub(crate) fn on_unfilled(&mut self, una: Seq, nxt: Seq) {
        if !self.grows_half_full {
            return;
        }
        let outstanding = nxt.since(una);
        let measures = self.measures();
        if outstanding > measures.most_unfilled
            || measures.unfilled_until.is_none_or(|until| until <= una)
        {
            measures.most_unfilled = outstanding;
            measures.unfilled_until = Some(nxt);
        }
    }
}

/// Changes by loss recovery.
impl CongestionWindow {
    pub(crate) fn state(&self) -> WindowState {
        WindowState {
            cwnd: self.cwnd(),
            ssthresh: self.ssthresh(),
        }
    }

    /// A loss or a mark outside of any recovery reduces the window, with a FlightSize of `flight`.
    pub(crate) fn reduce(
        &mut self,
        now: Instant,
        signal: Signal,
        flight: u64,
        srtt: Duration,
        change: WindowChange,
    ) {
        let before = self.state();
        let flight = self.validated_flight(now, srtt, flight, false);
        self.on_congestion(now, signal, flight);
        self.note_change(now, change, before);
    }

    /// A reduction from `in_flight` octets.
    pub(crate) fn on_congestion(&mut self, now: Instant, signal: Signal, in_flight: u64) {
        self.control.on_congestion(&Congestion {
            now,
            signal,
            in_flight: Bytes::new(in_flight),
        });
    }

    /// Bounds cwnd to `limit`, because the part beyond it was never used.
    pub(crate) fn bound(&mut self, now: Instant, limit: u64, in_flight: u64) {
        if limit < self.cwnd().get() {
            self.control.on_recovered(&Recovered {
                now,
                in_flight: Bytes::new(in_flight),
                cwnd_limit: Some(Bytes::new(limit)),
            });
        }
    }

    /// The retransmission timer has expired.
    pub(crate) fn on_timeout(&mut self, rto: &Rto) {
        let before = self.state();
        self.control.on_rto(rto);
        if self.is_validated {
            self.measures().validation.on_timeout();
        }
        self.note_change(rto.now, WindowChange::Timeout, before);
    }

    /// A timer rule starts a recovery over.
    pub(crate) fn on_timer_loss(&mut self, loss: &TimerLoss) {
        let before = self.state();
        self.control.on_timer_loss(loss);
        self.note_change(loss.now, WindowChange::Restart, before);
    }

    /// Ends a fast recovery (`recovered`), or the recovery after a timeout.
    pub(crate) fn on_recovered(&mut self, now: Instant, recovered: Option<&Recovered>) {
        let before = self.state();
        if let Some(recovered) = recovered {
            self.control.on_recovered(recovered);
        }
        self.validate_recovered();
        self.note_change(now, WindowChange::Recovered, before);
    }

    /// The last reduction was spurious, and is taken back.
    pub(crate) fn on_spurious(&mut self, spurious: &Spurious) {
        if self.is_validated {
            self.measures().validation.on_spurious();
        }
        let before = self.state();
        self.control.on_spurious(spurious);
        self.note_change(spurious.now, WindowChange::Undone, before);
    }

    /// Keeps every change of the window from now on, for [`Self::take_log`].
    pub(crate) fn keep_log(&mut self) {
        self.measures().log.get_or_insert_default();
    }

    /// The changes of the window since the last call, oldest first; none unless they are kept.
    pub(crate) fn take_log(&mut self) -> Vec<WindowEvent> {
        let log = self
            .measures
            .as_mut()
            .and_then(|measures| measures.log.as_mut());
        log.map(std::mem::take).unwrap_or_default()
    }

    /// Logs a change from the state `before`.
    pub(crate) fn note_change(&mut self, at: Instant, change: WindowChange, before: WindowState) {
        let after = self.state();
        if let Some(measures) = &mut self.measures
            && let Some(log) = &mut measures.log
        {
            log.push(WindowEvent {
                at,
                change,
                cwnd: (before.cwnd, after.cwnd),
                ssthresh: (before.ssthresh, after.ssthresh),
            });
        }
    }
}

/// Validation ([`window_validation`](crate::window_validation)).
impl CongestionWindow {
    /// Whether the window is validated.
    #[inline]
    pub(crate) const fn is_validated(&self) -> bool {
        self.is_validated
    }

    /// A round trip has ended, or everything sent is acknowledged; `acked` octets have been
    /// acknowledged in total.
    #[inline(never)]
    pub(crate) fn validate_round(&mut self, now: Instant, acked: u64, srtt: Duration) {
        self.measures().validation.on_round(now, acked);
        self.validate(now, srtt);
    }

    /// Returns whether the window is valid; halves it for each non-validated period that is over.
    #[inline(never)]
    fn validate(&mut self, now: Instant, srtt: Duration) -> bool {
        loop {
            let cwnd = self.cwnd().get();
            let validation = &mut self.measures().validation;
            let valid = validation.look(now, srtt, cwnd);
            if !validation.period_is_over(now) {
                return valid;
            }
            self.control.on_unvalidated(&Unvalidated::PeriodOver);
        }
    }

    /// Base of a reduction, with a FlightSize of `flight`. `repairs`: a recovery begins.
    pub(crate) fn validated_flight(
        &mut self,
        now: Instant,
        srtt: Duration,
        flight: u64,
        repairs: bool,
    ) -> u64 {
        if !self.is_validated {
            return flight;
        }
        self.validate(now, srtt);
        let validation = &mut self.measures().validation;
        validation.on_congestion(now, srtt, flight, repairs)
    }

    /// Data is sent after a pause of the application. Waiting for an acknowledgment is no pause.
    pub(crate) fn on_idle(&mut self, idle: &Idle, srtt: Duration) {
        if self.is_validated {
            self.validate(idle.now, srtt);
        }
        if !idle.idle.is_zero() {
            self.control.on_idle(idle);
        }
    }

    /// `record` is retransmitted.
    pub(crate) fn on_retransmission(&mut self, record: &Record) {
        if self.is_validated && !record.is_retransmitted() {
            let octets = u64::from(record.payload());
            self.measures().validation.on_resent(octets);
        }
    }

    /// A recovery is over, also one after a timeout, or one that proved spurious.
    pub(crate) fn validate_recovered(&mut self) {
        if self.is_validated
            && let Some(window) = self.measures().validation.on_recovered()
        {
            let window = Bytes::new(window);
            self.control
                .on_unvalidated(&Unvalidated::Recovered { window });
        }
    }
}

/// Delivery-rate samples ([`anabranch_congestion::rate`]).
impl CongestionWindow {
    /// Whether the control takes samples.
    #[inline]
    pub(crate) const fn is_rated(&self) -> bool {
        self.is_rated
    }

    /// Stamps the segment of the record at `index`, of `len` octets, which is being sent.
    #[inline(never)]
    pub(crate) fn stamp(&mut self, now: Instant, board: &Scoreboard, index: usize, len: u32) {
        let number = board.gone() + index as u64;
        let in_flight = board.in_flight() + u64::from(len);
        let rate = &mut self.measures().rate;
        rate.on_sent(number, now, board.is_empty(), in_flight);
    }

    /// A sample from the data that an acknowledgment delivered.
    #[inline(never)]
    pub(crate) fn rate_sample(&mut self, delivery: &Delivery) -> Option<RateSample> {
        self.measures.as_mut()?.rate.on_delivered(delivery)
    }

    /// The application has less to send than the window permits (draft-ietf-ccwg-bbr §4.1.2.4), and
    /// no other limit applies.
    pub(crate) fn on_app_limited(&mut self, board: &Scoreboard) {
        let in_flight = board.in_flight();
        if board.lost() == 0
            && in_flight < self.cwnd().get()
            && let Some(measures) = &mut self.measures
        {
            measures.rate.on_app_limited(in_flight);
        }
    }

    /// A segment is split into `pieces`.
    pub(crate) fn split(&mut self, number: u64, pieces: usize) {
        if self.is_rated {
            self.measures().rate.split(number, pieces);
        }
    }

    /// Reports every segment newly marked lost to the control, if it takes samples. Returns the
    /// number of octets.
    #[inline(never)]
    pub(crate) fn report_losses(
        &mut self,
        now: Instant,
        board: &mut Scoreboard,
        sack: bool,
    ) -> Bytes {
        let mut total = Bytes::ZERO;
        if !self.is_rated {
            return total;
        }
        for number in board.take_loss_log() {
            let index = number.checked_sub(board.gone()).map(usize::try_from);
            let record = index.and_then(|index| board.get(index.ok()?));
            let (Some(record), Some(measures)) = (record, &mut self.measures) else {
                continue;
            };
            total += Bytes::new(u64::from(record.len()));
            let segment = (number, u64::from(record.len()));
            if let Some(lost) = measures.rate.on_lost(now, segment, sack) {
                self.control.on_lost(&lost);
            }
        }
        total
    }
}
