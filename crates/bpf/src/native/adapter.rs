//! Translation of the simulator's events to calls of a control's functions.

use std::{fmt, sync::Arc};

use anabranch_congestion::{
    Ack, Congestion, CongestionControl, Idle, IdleRestart, Init, Recovered, Rto, Sent, Signal,
    Spurious, Unvalidated, Wants,
};
use anabranch_core::units::{Bytes, Duration, Instant, Rate};

use super::{
    abi::{AckSample, Event, INFINITE_SSTHRESH, RateSample, State, TcpSock},
    library::Loaded,
};

/// The kernel's pacing rate of a socket that is not paced.
const UNPACED: u64 = u64::MAX;
/// `CA_ACK_SLOWPATH` and `CA_ACK_ECE`.
const SLOW_PATH: u32 = 1;
const ECHO: u32 = 4;

/// A control of one connection.
pub(super) struct Adapter {
    code: Arc<Loaded>,
    /// State of the kernel's socket. Boxed, because the control may keep its address.
    sock: Box<TcpSock>,
    smss: u64,
    initial_cwnd: u32,
    /// Octets acknowledged and delivered that do not yet form a packet.
    acked: u64,
    delivered: u64,
    /// Sequence number up to which data must be acknowledged before a timeout or a mark is over.
    high: u32,
    /// The next acknowledgment ends the recovery.
    ends: bool,
}

impl fmt::Debug for Adapter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Adapter")
            .field("sock", &self.sock)
            .finish_non_exhaustive()
    }
}

/// Converts to a 32-bit field, saturating.
fn clamped(number: u64) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

/// The low 32 bits, because sequence numbers and counters wrap.
#[expect(clippy::cast_possible_truncation, reason = "these numbers go round")]
const fn wrapped(number: u64) -> u32 {
    number as u32
}

fn micros(time: Duration) -> u64 {
    time.as_nanos() / 1000
}

fn signed(number: u64) -> i32 {
    i32::try_from(number).unwrap_or(i32::MAX)
}

/// Calls a function of the control, if present.
macro_rules! call {
    ($self:ident.$function:ident($($argument:expr),*)) => {
        if let Some(function) = $self.code.ops.$function {
            let sock: *mut TcpSock = &mut *$self.sock;
            // SAFETY: the function's type was compared with the shim's headers when it was loaded;
            // the socket and the other arguments live through the call, and our code does not
            // access them during it. Their use by the C code is its author's responsibility.
            Some(unsafe { function(sock $(, $argument)*) })
        } else {
            None
        }
    };
}

impl Adapter {
    pub fn new(code: Arc<Loaded>, init: &Init) -> Self {
        let smss = init.smss.get().max(1);
        let initial_cwnd = clamped(init.initial_cwnd.get() / smss).max(1);
        let mut sock = Box::new(TcpSock {
            snd_cwnd: initial_cwnd,
            snd_cwnd_clamp: u32::MAX,
            snd_ssthresh: INFINITE_SSTHRESH,
            mss_cache: clamped(smss),
            reordering: 3,
            ..TcpSock::default()
        });
        (sock.sk.sk_pacing_rate, sock.sk.sk_max_pacing_rate) = (UNPACED, UNPACED);
        let mut adapter = Self {
            code,
            sock,
            smss,
            initial_cwnd,
            acked: 0,
            delivered: 0,
            high: 0,
            ends: false,
        };
        adapter.code.set_now(0);
        call!(adapter.init());
        adapter
    }

    fn packets(&self, bytes: Bytes) -> u64 {
        bytes.get().div_ceil(self.smss)
    }

    fn at(&mut self, now: Instant) {
        let ns = now.saturating_since(Instant::START).as_nanos();
        self.code.set_now(ns);
        self.sock.tcp_mstamp = ns / 1000;
        self.sock.snd_cwnd_stamp = wrapped(ns / 1_000_000);
    }

    fn state_is(&self, state: State) -> bool {
        self.sock.icsk_ca_state == state as u8
    }

    fn set_state(&mut self, state: State) {
        call!(self.set_state(state as u8));
        self.sock.icsk_ca_state = state as u8;
        self.high = self.sock.snd_nxt;
        self.ends = false;
    }

    fn event(&mut self, event: Event) {
        call!(self.cwnd_event(event as u32));
    }

    fn sets_its_window(&self) -> bool {
        self.code.ops.cong_control.is_some()
    }

    /// The recovery, the round trip of the marks or the timeout is over.
    fn reopen(&mut self) {
        if !self.state_is(State::Open) {
            if !self.state_is(State::Loss) {
                self.event(Event::CompleteCwr);
            }
            self.set_state(State::Open);
        }
    }

    /// Begins a reduction and returns the reduced window.
    fn reduce(&mut self) -> u32 {
        self.sock.prior_cwnd = self.sock.snd_cwnd;
        self.sock.prior_ssthresh = self.sock.snd_ssthresh;
        let ssthresh = call!(self.ssthresh()).unwrap_or(INFINITE_SSTHRESH);
        self.sock.snd_ssthresh = ssthresh;
        self.sock.snd_cwnd_cnt = 0;
        ssthresh
    }

    fn set_cwnd(&mut self, packets: u32) {
        self.sock.snd_cwnd = packets.max(1);
    }

    fn update_sock(&mut self, ack: &Ack) {
        // In eighths of a microsecond.
        let srtt = clamped(ack.srtt.as_nanos() / 125);
        self.acked += ack.acked.get();
        self.delivered += ack.delivered.get();
        let outstanding = self.sock.snd_nxt.wrapping_sub(self.sock.snd_una);
        let acked = clamped(ack.acked.get()).min(outstanding);
        let (packets, marked) = (self.delivered / self.smss, self.packets(ack.ce_marked));
        self.delivered %= self.smss;
        let (lost, in_flight) = (self.packets(ack.lost), self.packets(ack.in_flight));
        let sock = &mut self.sock;
        sock.srtt_us = srtt;
        sock.snd_una = sock.snd_una.wrapping_add(acked);
        sock.packets_out = clamped(in_flight);
        sock.delivered = sock.delivered.wrapping_add(wrapped(packets));
        sock.delivered_ce = sock.delivered_ce.wrapping_add(wrapped(marked));
        sock.lost = sock.lost.wrapping_add(wrapped(lost));
        sock.app_limited = u32::from(ack.app_limited);
        sock.is_cwnd_limited = u8::from(ack.cwnd_limited);
        if packets > 0 {
            sock.delivered_mstamp = sock.tcp_mstamp;
        }
        let sample = AckSample {
            pkts_acked: clamped(packets),
            rtt_us: ack.rtt.map_or(-1, |rtt| signed(micros(rtt))),
            in_flight: clamped(self.packets(ack.prior_in_flight)),
        };
        call!(self.pkts_acked(&raw const sample));
        let mut flags = 0;
        if ack.in_recovery || ack.sacked > Bytes::ZERO {
            flags |= SLOW_PATH;
        }
        if ack.ce_marked > Bytes::ZERO {
            flags |= SLOW_PATH | ECHO;
            self.event(Event::EcnIsCe);
        }
        call!(self.in_ack_event(flags));
    }

    /// The rate sample of a control with `cong_control`.
    fn rate_sample(&self, ack: &Ack, acked: u64) -> RateSample {
        let mut sample = RateSample {
            delivered: -1,
            interval_us: -1,
            rtt_us: ack.rtt.map_or(-1, |rtt| signed(micros(rtt)).into()),
            losses: signed(self.packets(ack.lost)),
            acked_sacked: clamped(acked),
            prior_in_flight: clamped(self.packets(ack.prior_in_flight)),
            ..RateSample::default()
        };
        if let Some(rate) = &ack.rate {
            sample.delivered = signed(self.packets(rate.delivered));
            if rate.is_reliable {
                sample.interval_us = signed(micros(rate.interval)).into();
            }
            sample.prior_delivered = wrapped(rate.prior_delivered.get() / self.smss);
            sample.is_app_limited = rate.app_limited;
        }
        sample
    }
}

impl CongestionControl for Adapter {
    fn on_sent(&mut self, sent: &Sent) {
        if !sent.retransmission {
            self.sock.snd_nxt = self.sock.snd_nxt.wrapping_add(wrapped(sent.bytes.get()));
        }
        self.sock.packets_out = clamped(self.packets(sent.in_flight));
        self.sock.tcp_wstamp_ns = sent.now.saturating_since(Instant::START).as_nanos();
    }

    fn on_ack(&mut self, ack: &Ack) {
        self.at(ack.now);
        let delivered = (self.delivered + ack.delivered.get()) / self.smss;
        self.update_sock(ack);
        let over = !before(self.sock.snd_una, self.high);
        if self.ends || (over && !ack.in_recovery) {
            self.reopen();
        } else if ack.in_recovery && self.state_is(State::Open) {
            // A recovery without a reduction: the last reduction is less than a round trip old.
            self.set_state(State::Recovery);
        }
        let packets = self.acked / self.smss;
        self.acked %= self.smss;
        let una = self.sock.snd_una;
        if self.sets_its_window() {
            let sample = self.rate_sample(ack, delivered);
            call!(self.cong_control(una, 0, &raw const sample));
        } else if !ack.in_recovery && packets > 0 {
            call!(self.cong_avoid(una, clamped(packets)));
        }
    }

    fn on_congestion(&mut self, event: &Congestion) {
        self.at(event.now);
        if self.ends {
            self.reopen();
        }
        let ssthresh = self.reduce();
        self.set_state(match event.signal {
            Signal::Loss => State::Recovery,
            Signal::EcnCe => State::Cwr,
        });
        if !self.sets_its_window() {
            // A window of one segment becomes two (RFC 5681 §3.1 equation 4).
            self.set_cwnd(self.sock.snd_cwnd.max(2).min(ssthresh));
        }
    }

    fn on_rto(&mut self, event: &Rto) {
        self.at(event.now);
        // RFC 5681 §3.1: ssthresh is held when the timer expires again for the same segment.
        if event.consecutive <= 1 {
            self.reduce();
        }
        self.event(Event::Loss);
        self.sock.icsk_retransmits = u8::try_from(event.consecutive).unwrap_or(u8::MAX);
        self.sock.snd_cwnd_cnt = 0;
        self.set_cwnd(1);
        self.set_state(State::Loss);
    }

    fn on_recovered(&mut self, event: &Recovered) {
        self.at(event.now);
        if let Some(limit) = event.cwnd_limit {
            let limit = clamped(limit.get() / self.smss);
            if limit < self.sock.snd_cwnd {
                self.set_cwnd(limit);
            }
        }
        // The acknowledgment that ends the recovery still belongs to it for the control.
        self.ends = self.state_is(State::Recovery);
    }

    fn on_spurious(&mut self, event: &Spurious) {
        self.at(event.now);
        let undone = call!(self.undo_cwnd()).unwrap_or(0);
        self.set_cwnd(self.sock.snd_cwnd.max(undone));
        self.sock.snd_ssthresh = self.sock.snd_ssthresh.max(self.sock.prior_ssthresh);
        self.set_state(State::Open);
    }

    fn on_idle(&mut self, event: &Idle) {
        self.at(event.now);
        let cwnd = f64::from(self.sock.snd_cwnd);
        let window = event.restart_window(cwnd, f64::from(self.initial_cwnd));
        let ssthresh = event.restart_ssthresh(cwnd, 0.0);
        if event.idle > event.rto && event.rule != IdleRestart::Off && !self.sets_its_window() {
            self.event(Event::CwndRestart);
            self.sock.snd_ssthresh = self.sock.snd_ssthresh.max(whole(ssthresh));
            self.set_cwnd(whole(window));
            self.sock.snd_cwnd_cnt = 0;
        }
        self.event(Event::TxStart);
    }

    fn on_unvalidated(&mut self, event: &Unvalidated) {
        let cwnd = self.sock.snd_cwnd;
        match event {
            Unvalidated::PeriodOver => {
                self.sock.snd_ssthresh = self.sock.snd_ssthresh.max(cwnd / 4 * 3);
                self.set_cwnd((cwnd / 2).max(self.initial_cwnd.min(cwnd)));
            }
            Unvalidated::Recovered { window } => {
                let most = clamped(window.get() / self.smss).max(2);
                self.set_cwnd(cwnd.min(most));
                self.sock.snd_ssthresh = self.sock.snd_ssthresh.min(most);
            }
        }
    }

    fn cwnd(&self) -> Bytes {
        Bytes::new(u64::from(self.sock.snd_cwnd) * self.smss)
    }

    fn ssthresh(&self) -> Option<Bytes> {
        let ssthresh = self.sock.snd_ssthresh;
        (ssthresh < INFINITE_SSTHRESH).then(|| Bytes::new(u64::from(ssthresh) * self.smss))
    }

    fn pacing_rate(&self) -> Option<Rate> {
        let rate = self.sock.sk.sk_pacing_rate;
        if rate == UNPACED {
            return None;
        }
        Rate::new(rate.saturating_mul(8))
    }

    fn wants(&self) -> Wants {
        Wants {
            rate_samples: self.sets_its_window(),
            ..Wants::default()
        }
    }
}

impl Drop for Adapter {
    fn drop(&mut self) {
        call!(self.release());
    }
}

/// Whether a sequence number precedes another (RFC 9293 §3.4).
const fn before(a: u32, b: u32) -> bool {
    a.wrapping_sub(b).cast_signed() < 0
}

/// Whole packets.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a float-to-int cast saturates"
)]
const fn whole(packets: f64) -> u32 {
    packets as u32
}
