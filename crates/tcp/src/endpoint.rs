//! One end of a connection.
//!
//! Sans-I/O: the owner hands in segments ([`Endpoint::on_segment`]), the application's wishes
//! ([`Endpoint::write`], [`Endpoint::close`], …) and the time ([`Endpoint::on_deadline`], once
//! [`Endpoint::deadline`] has come), and after each of them takes what is to be sent
//! ([`Endpoint::poll_transmit`], until `None`).
//!
//! An endpoint is a `Sender`, a `Receiver`, and what connects them: the state of the connection, what the handshake has agreed on,
//! and the timer.

mod acknowledgment;
mod application;
mod autotuning;
mod close;
mod control_segments;
mod ecn;
mod fast_recovery;
mod give_up;
mod growth;
mod handshake;
mod header;
mod input;
mod layered;
mod limit;
mod loss_timers;
mod measurement;
mod output;
mod pacing;
mod remedy;
mod sack;
mod timers;
mod transmission;
mod validation;
mod view;
mod watch;
mod window_log;
mod write_space;

use std::sync::Arc;

use anabranch_core::{
    body::Body,
    packet::Ecn,
    units::{Duration, Instant},
};

use self::{autotuning::Tuner, ecn::EcnState, input::Reports, timers::Timer};
use super::{
    ack::AckPolicy,
    receive_buffer::ReceiveBuffer,
    recovery::{
        RecoveryState, timer_rule::TimerRuleState, tlp::Probing, watch::Watch,
        window_log::WindowLog,
    },
    refusal::{Refusal, Refusals},
    rtt::RttEstimator,
    scoreboard::Scoreboard,
    segment::Segment,
    send_buffer::SendBuffer,
    send_limit::{LimitAccount, SendLimit},
    seq::Seq,
    settings::Settings,
    state::{Event, State},
    stats::Stats,
    window_validation::Validation,
};
use crate::cause::RetransmitCause;
use anabranch_congestion::{CongestionControl, Control, IdleRestart, TimerRule, rate::RateSampler};

/// Which end opens the connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// It sends the SYN when told to.
    Active,
    /// It waits for one.
    Passive,
}

/// A segment on its way out.
#[derive(Debug, Clone, PartialEq)]
pub struct Outgoing<B> {
    /// The segment.
    pub segment: Segment<B>,
    /// Bytes of the IPv4 packet.
    pub size: u32,
    /// ECN field of the IP header.
    pub ecn: Ecn,
    /// Its payload, or its SYN or FIN, was sent before, and is retransmitted for this.
    pub retransmission: Option<RetransmitCause>,
}

/// What goes with a segment on its way out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Departure {
    /// Bytes of the IPv4 packet.
    pub size: u32,
    /// ECN field of the IP header.
    pub ecn: Ecn,
    /// Why its payload, or its SYN or FIN, is retransmitted; `None` if it was not sent before.
    pub retransmission: Option<RetransmitCause>,
}

/// Which options both ends agreed on, and other facts that seldom change.
#[derive(Debug, Clone, Copy)]
#[expect(clippy::struct_excessive_bools, reason = "facts of their own")]
struct Agreed {
    sack: bool,
    /// SACK guides the recovery (RFC 6675).
    guided: bool,
    /// What finds the losses.
    finder: Finder,
    /// And probes the tail.
    tlp: bool,
    timestamps: bool,
    ecn: bool,
    /// Every segment may tell of marks, or of their end.
    exact_ecn: bool,
    /// The receive window grows with need.
    tuned: bool,
    scaling: bool,
    /// Shift of the windows that we receive.
    snd_scale: u8,
    /// Shift of the windows that we send.
    rcv_scale: u8,
}

/// What finds the losses. Where it is *attended*, no acknowledgment and no segment is plain: a remedy
/// for reordering hears of each, every sample counts for itself (RFC 4015 §3.3), or a coarse clock counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Finder {
    Duplicates,
    /// RACK (RFC 8985).
    Rack,
    // The attended ones, behind the others so that one comparison tells.
    DuplicatesAttended,
    RackAttended,
    /// The age of segments; always attended.
    Age,
}

impl Agreed {
    #[inline]
    const fn racked(&self) -> bool {
        matches!(self.finder, Finder::Rack | Finder::RackAttended)
    }
    #[inline]
    const fn attended(&self) -> bool {
        !matches!(self.finder, Finder::Duplicates | Finder::Rack)
    }
    #[inline]
    const fn aged(&self) -> bool {
        matches!(self.finder, Finder::Age)
    }
}

/// What may be wanted from [`Endpoint::poll_transmit`] besides data.
#[derive(Debug, Clone, Copy, Default)]
#[expect(clippy::struct_excessive_bools, reason = "wishes of their own")]
struct Wanted {
    /// Something happened since nothing was left to send.
    wake: bool,
    /// A segment sent before, whatever the window.
    retransmit: Retransmit,
    /// Some of `syn`, `probe` and `ack`, or a RST ([`give_up::Trouble::reset`]).
    urgent: bool,
    /// SYN, with or without acknowledgment.
    syn: bool,
    /// FIN once everything before it has left.
    fin: bool,
    /// A window probe.
    probe: bool,
    /// An acknowledgment ahead of data that could carry it.
    ack: bool,
}

/// What is retransmitted whatever the window.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Retransmit {
    /// Nothing.
    #[default]
    Nothing,
    /// The first segment that is not acknowledged.
    First(RetransmitCause),
    /// The first segment that is marked lost.
    FirstLost,
    /// New data or the last segment, to probe (RFC 8985 §7.3).
    Probe,
}

/// One end of a connection. See the module.
#[derive(Debug)]
pub struct Endpoint<B: Body> {
    state: State,
    wanted: Wanted,
    agreed: Agreed,
    /// Full segment in octets: ours or the peer's, whichever is smaller.
    smss: u32,
    /// Expiries of the retransmission timer since the last progress.
    expiries: u16,
    timer: Timer,
    timer_at: Instant,
    stats: Stats,
    settings: Arc<Settings>,
    cold: Box<Cold<B>>,
    snd: Sender<B>,
    rcv: Receiver,
}

/// The sending half: what is in flight, what may be, and when.
#[derive(Debug)]
#[expect(clippy::struct_excessive_bools, reason = "facts of their own")]
struct Sender<B: Body> {
    /// What limits the sender, as of when nothing more could leave.
    limit: SendLimit,
    /// SND.UNA
    una: Seq,
    /// SND.NXT
    nxt: Seq,
    /// SND.UNA + SND.WND: the right edge of the peer's window.
    edge: Seq,
    /// SND.WL1
    wl1: Seq,
    /// SND.WL2
    wl2: Seq,
    /// SND.WND
    wnd: u32,
    /// Octets of the send buffer.
    capacity: u64,
    /// Up to where an application that always has more to send has written.
    write_edge: Seq,
    /// It writes anew once so much is acknowledged.
    written_anew_at: Seq,
    /// Octets of the congestion window that are taken by what is not data.
    reserved: u64,
    /// A timer rule is at work.
    timed: bool,
    /// Where the last probe stands (RFC 8985 §7.3, §7.4).
    probing: Probing,
    /// The control wants rate samples.
    rated: bool,
    /// Pauses keep the window while pipeACK tells whether it is valid (RFC 7661).
    validating: bool,
    /// Data may have to wait for its time.
    paced: bool,
    /// Segments that have left together so far, and how many are handed over as one at most; 0 if each is
    /// handed over by itself, [`pacing::UNKNOWN_TRAIN`] if it has to be measured.
    train: u8,
    longest_train: u8,
    /// When data last left; [`Instant::NEVER`] before.
    last_sent: Instant,
    /// Pacing holds data back until then; never if it does not.
    paced_until: Instant,
    /// Pacing permits the next data from then on.
    paced_from: Instant,
    /// Data that leaves before this number is acknowledged left while cwnd was the limit.
    cwnd_limited_until: Seq,
    /// Round trips counted, and the number whose acknowledgment ends the current one.
    round: u64,
    round_end: Seq,
    rtt: RttEstimator,
    recovery: RecoveryState,
    board: Scoreboard,
    buffer: SendBuffer<B>,
    control: Control,
}

/// The receiving half: what has come, and what of it is to be acknowledged.
#[derive(Debug)]
#[expect(clippy::struct_excessive_bools, reason = "facts of their own")]
struct Receiver {
    auto_read: bool,
    /// TS.Recent (RFC 7323 §4.3)
    ts_recent: u32,
    /// When TS.Recent was taken ([`header::age_tick`]).
    ts_recent_at: u16,
    /// RCV.NXT
    nxt: Seq,
    /// RCV.NXT + RCV.WND as last advertised.
    edge: Seq,
    /// Last.ACK.sent (RFC 7323 §4.3)
    acked: Seq,
    /// Octets of the receive buffer, as many as a scaled window can tell.
    window: u64,
    /// The window field as last sent, once it has been sent scaled.
    field: u16,
    /// The window as it stands has been advertised.
    advertised: bool,
    /// Something waits beyond a gap.
    gaps: bool,
    /// A duplicate waits to be reported (RFC 2883).
    duplicate: bool,
    ack: AckPolicy,
}

/// What the steady state does not touch.
#[derive(Debug)]
struct Cold<B> {
    /// Number of the first octet of our stream.
    first_octet: Seq,
    /// Made when something arrives out of order or waits to be read.
    receive: Option<Box<ReceiveBuffer<B>>>,
    timer_rule: Option<Box<TimerRuleState>>,
    /// What the recoveries beyond RFC 6675 keep.
    watch: Option<Box<Watch>>,
    /// Made when there is something to note.
    notes: Option<Box<Notes>>,
    /// Window probes since the window closed.
    probes: u16,
    /// By how much RCV.NXT + RCV.WND as last advertised is more than what was to be offered.
    rcv_rounded: u16,
    /// The largest window the peer has offered (RFC 9293 §3.8.6.2.1).
    max_snd_wnd: u32,
    /// IRS: number of the peer's SYN, as it travels.
    irs: u32,
    /// Number of the peer's FIN while it waits for what is before it; [`Seq::END`] otherwise.
    peer_fin: Seq,
    /// It waited for the SYN.
    passive: bool,
    /// Made when something gets no answer, or the connection ends badly.
    trouble: Option<Box<give_up::Trouble>>,
    /// Octets of the largest segment that a peer takes which tells of none.
    default_mss: u16,
    /// Made when it is needed.
    extras: Option<Box<Extras>>,
    /// How long each limit has held.
    limits: LimitAccount,
    /// The send buffer had no room for all of the last write.
    write_was_cut: bool,
}

/// What only some stacks need.
#[derive(Debug, Default)]
struct Extras {
    ecn: EcnState,
    tuner: Tuner,
    reports: Reports,
    rate: RateSampler,
    validation: Option<Box<Validation>>,
    /// How far the send buffer has grown.
    send_space: u64,
    /// The application is writing until then, and has not found the send buffer full; never if it waits.
    writes_until: Option<Instant>,
    /// SND.UNA when the send buffer was found full, until whoever writes has written again; for delivery-rate samples.
    blocked_at: Option<Seq>,
    /// Octets that may still leave before their time ([`Endpoint::pace`]).
    burst: u64,
    /// So much later than it might have the burst under way has begun to leave, less what has been taken off its time
    /// ([`Segmentation`](crate::policy::Segmentation)).
    late: Duration,
    unfilled: Unfilled,
}

/// What was outstanding where something other than cwnd held data back ([`WindowRules`](crate::policy::WindowRules)).
#[derive(Debug, Default)]
struct Unfilled {
    /// The most octets at once since what was outstanding then was acknowledged.
    most: u64,
    /// The acknowledgment of this ends the round trip.
    until: Option<Seq>,
}

/// What is noted for those who look at a connection from outside.
#[derive(Debug, Default)]
struct Notes {
    /// Changes of the window, if they are kept.
    windows: Option<WindowLog>,
    /// What was refused.
    refused: Refusals,
    /// When a challenge last left (RFC 5961 §7).
    challenged: Option<Instant>,
}

impl<B> Cold<B> {
    fn new(role: Role, first: Seq) -> Self {
        Self {
            first_octet: first + 1,
            receive: None,
            timer_rule: None,
            watch: None,
            notes: None,
            probes: 0,
            max_snd_wnd: 0,
            rcv_rounded: 0,
            irs: 0,
            peer_fin: Seq::END,
            passive: role == Role::Passive,
            trouble: None,
            default_mss: handshake::DEFAULT_MSS,
            extras: None,
            limits: LimitAccount::default(),
            write_was_cut: false,
        }
    }
    fn extras(&mut self) -> &mut Extras {
        self.extras.get_or_insert_default()
    }
    fn trouble(&mut self) -> &mut give_up::Trouble {
        self.trouble.get_or_insert_default()
    }
    /// How the connection ended other than by FIN, and when.
    fn ended(&self) -> Option<(Ending, Instant)> {
        self.trouble.as_ref()?.ended
    }
}

/// How a connection ended other than by FIN.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// The peer reset it.
    Reset,
    /// The peer answered the SYN by a reset: nobody listens.
    Refused,
    /// This end aborted it.
    Aborted,
    /// Too many timeouts without progress (RFC 9293 §3.8.3).
    TimedOut,
    /// The application closed it before it was open (RFC 9293 §3.10.4).
    Abandoned,
}

impl<B: Body> Endpoint<B> {
    /// An end that has not begun. `iss` is its initial sequence number. `control` should have been
    /// made for [`Settings::mss`] and [`Settings::initial_cwnd`].
    #[must_use]
    pub fn new(settings: &Arc<Settings>, control: Control, role: Role, iss: u32) -> Self {
        let first = Seq::first(iss);
        let mut board = Scoreboard::default();
        if control.wants().losses {
            board.note_losses();
        }
        Self {
            state: match role {
                Role::Active => State::Closed,
                Role::Passive => State::Listen,
            },
            wanted: Wanted::default(),
            agreed: Agreed {
                sack: settings.sack,
                timestamps: settings.timestamps,
                guided: false,
                finder: if settings.timers.count_ticks() {
                    Finder::DuplicatesAttended
                } else {
                    Finder::Duplicates
                },
                tlp: false,
                ecn: false,
                exact_ecn: false,
                tuned: settings.receive_autotuning,
                scaling: false,
                snd_scale: 0,
                rcv_scale: 0,
            },
            smss: settings.mss,
            expiries: 0,
            timer: Timer::Off,
            timer_at: Instant::NEVER,
            stats: Stats::default(),
            settings: Arc::clone(settings),
            cold: Box::new(Cold::new(role, first)),
            snd: Sender {
                limit: SendLimit::Application,
                una: first,
                nxt: first,
                edge: first,
                wl1: first,
                wl2: first,
                wnd: 0,
                capacity: settings.send_buffer_bytes(),
                write_edge: first,
                written_anew_at: first,
                reserved: 0,
                timed: false,
                probing: Probing::Free,
                rated: control.wants().rate_samples,
                validating: settings.idle_restart == IdleRestart::Rfc7661,
                paced: settings.pacing
                    || control.pacing_rate().is_some()
                    || matches!(control, Control::Boxed(_)),
                train: 0,
                longest_train: if settings.segmentation.is_tso() {
                    pacing::SHORTEST_TRAIN
                } else {
                    0
                },
                last_sent: Instant::NEVER,
                paced_until: Instant::NEVER,
                paced_from: Instant::START,
                cwnd_limited_until: first,
                round: 0,
                round_end: first,
                rtt: RttEstimator::new(settings.initial_rto),
                recovery: RecoveryState::new(first),
                board,
                buffer: SendBuffer::new(first + 1),
                control,
            },
            rcv: Receiver {
                auto_read: true,
                ts_recent: 0,
                ts_recent_at: 0,
                nxt: Seq::first(0),
                edge: Seq::first(0),
                acked: Seq::first(0),
                window: settings.first_receive_window(),
                field: 0,
                advertised: false,
                gaps: false,
                duplicate: false,
                ack: AckPolicy::new(settings.delayed_ack)
                    .with_window(settings.first_receive_window() / u64::from(settings.mss)),
            },
        }
    }

    /// Finds losses by `rule` besides ([`Config::timer_rule`](anabranch_congestion::Config::timer_rule)).
    #[must_use]
    pub fn with_timer_rule(mut self, rule: Option<TimerRule>) -> Self {
        self.snd.timed = rule.is_some();
        self.cold.timer_rule = rule.map(|rule| Box::new(TimerRuleState::new(rule, self.snd.una)));
        self
    }

    /// When [`Self::on_deadline`] wants to be called; [`Instant::NEVER`] if not at all.
    #[must_use]
    #[inline]
    pub fn deadline(&self) -> Instant {
        let mut at = self
            .timer_at
            .min(self.rcv.ack.deadline())
            .min(self.snd.paced_until);
        if let Some(timer) = self.snd.control.timer() {
            at = at.min(timer);
        }
        at
    }

    #[cold]
    #[inline(never)]
    fn refuse(&mut self, reason: Refusal) {
        self.stats.malformed += u64::from(reason.is_malformed());
        let notes = self.cold.notes.get_or_insert_default();
        notes.refused.count(reason);
    }
    /// Whether our FIN has left, or can no longer leave.
    fn send_is_over(&self) -> bool {
        matches!(
            self.state,
            State::FinWait1 | State::FinWait2 | State::Closing | State::LastAck | State::TimeWait
        ) || self.cold.ended().is_some()
    }

    fn transit(&mut self, event: Event) {
        self.state = self
            .state
            .after(event)
            .expect("an arrow of RFC 9293 figure 5");
    }
}

#[cfg(test)]
mod tests;
