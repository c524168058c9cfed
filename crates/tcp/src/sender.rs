//! The sending half of a connection: what is in flight, what may be, and when.
//!
//! It owns the send buffer, the scoreboard, recovery, the RTT estimator, congestion control, pacing and the timer. Its
//! methods that put a segment together take the [`Receiver`](crate::receiver::Receiver), whose acknowledgment and
//! window every segment carries.

mod acknowledgment;
mod ecn;
mod fast_recovery;
mod growth;
mod limit;
mod loss_timers;
mod measurement;
mod output;
mod pacing;
mod path_mtu;
mod remedy;
mod sack;
mod timers;
mod transmission;
mod validation;
mod watch;
mod window_log;
mod write;
mod write_space;

use std::sync::Arc;

use anabranch_core::{
    body::Body,
    units::{Duration, Instant},
};

use self::ecn::SenderEcn;
pub(crate) use self::{acknowledgment::Outcome, timers::Timer};
use crate::{
    cause::RetransmitCause,
    peer_window::PeerWindow,
    recovery::{
        RecoveryState, timer_rule::TimerRuleState, tlp::Probing, watch::Watch,
        window_log::WindowLog,
    },
    refusal::Refusals,
    retries::Retries,
    rtt::RttEstimator,
    scoreboard::Scoreboard,
    send_buffer::SendBuffer,
    send_limit::{LimitAccount, SendLimit},
    seq::Seq,
    settings::Settings,
    stats::SenderStats,
    window_validation::Validation,
};
use anabranch_congestion::{
    Attached, CongestionControl, Control, IdleRestart, TimerRule, rate::RateSampler,
};

/// The sending half. See the module.
#[derive(Debug)]
#[expect(clippy::struct_excessive_bools, reason = "facts of their own")]
pub(crate) struct Sender<B: Body> {
    pub(crate) settings: Arc<Settings>,
    pub(crate) agreed: Agreed,
    /// Something happened since nothing was left to send.
    pub(crate) wake: bool,
    /// A segment sent before, whatever the window.
    pub(crate) retransmit: Retransmit,
    pub(crate) stream: Stream,
    /// Full segment in octets: ours or the peer's, whichever is smaller.
    pub(crate) smss: u32,
    pub(crate) retries: Retries,
    pub(crate) timer: Timer,
    pub(crate) timer_at: Instant,
    pub(crate) stats: SenderStats,
    /// What limits the sender, as of when nothing more could leave.
    pub(crate) limit: SendLimit,
    /// SND.UNA and the send window.
    pub(crate) peer: PeerWindow,
    /// SND.NXT
    pub(crate) nxt: Seq,
    /// Octets of the send buffer.
    pub(crate) capacity: u64,
    /// Up to where an application that always has more to send has written.
    pub(crate) write_edge: Seq,
    /// It writes anew once so much is acknowledged.
    pub(crate) written_anew_at: Seq,
    /// Octets of the congestion window that are taken by what is not data.
    pub(crate) reserved: u64,
    /// A timer rule is at work.
    pub(crate) timed: bool,
    /// Where the last probe stands (RFC 8985 §7.3, §7.4).
    pub(crate) probing: Probing,
    /// The control wants rate samples.
    pub(crate) rated: bool,
    /// Pauses keep the window while pipeACK tells whether it is valid (RFC 7661).
    pub(crate) validating: bool,
    /// Data may have to wait for its time.
    pub(crate) paced: bool,
    /// Segments that have left together so far, and how many are handed over as one at most; 0 if each is
    /// handed over by itself, [`pacing::UNKNOWN_TRAIN`] if it has to be measured.
    pub(crate) train: u8,
    pub(crate) longest_train: u8,
    /// When data last left; [`Instant::NEVER`] before.
    pub(crate) last_sent: Instant,
    /// Pacing holds data back until then; never if it does not.
    pub(crate) paced_until: Instant,
    /// Pacing permits the next data from then on.
    pub(crate) paced_from: Instant,
    /// Data that leaves before this number is acknowledged left while cwnd was the limit.
    pub(crate) cwnd_limited_until: Seq,
    /// Round trips counted, and the number whose acknowledgment ends the current one.
    pub(crate) round: u64,
    pub(crate) round_end: Seq,
    pub(crate) rtt: RttEstimator,
    pub(crate) recovery: RecoveryState,
    pub(crate) board: Scoreboard,
    pub(crate) buffer: SendBuffer<B>,
    pub(crate) control: Attached,
    pub(crate) cold: Box<Cold>,
}

/// How far the stream of data has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stream {
    /// The application may write.
    Open,
    /// A FIN follows what has been written.
    Closing,
    /// The FIN has left, or can no longer leave.
    Over,
}

impl Stream {
    pub(crate) const fn is_over(self) -> bool {
        matches!(self, Self::Over)
    }
}

/// What both ends agreed on that concerns the sender.
#[derive(Debug, Clone, Copy)]
#[expect(clippy::struct_excessive_bools, reason = "facts of their own")]
pub(crate) struct Agreed {
    /// SACK guides the recovery (RFC 6675).
    pub(crate) guided: bool,
    /// What finds the losses.
    pub(crate) finder: Finder,
    /// And probes the tail.
    pub(crate) tlp: bool,
    pub(crate) timestamps: bool,
    /// New data is ECN-capable, and marks are believed.
    pub(crate) ecn: bool,
}

/// What finds the losses. Where it is *attended*, no acknowledgment and no segment is plain: a remedy
/// for reordering hears of each, every sample counts for itself (RFC 4015 §3.3), or a coarse clock counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Finder {
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
    pub(crate) const fn racked(self) -> bool {
        matches!(self.finder, Finder::Rack | Finder::RackAttended)
    }
    #[inline]
    pub(crate) const fn attended(self) -> bool {
        !matches!(self.finder, Finder::Duplicates | Finder::Rack)
    }
    #[inline]
    pub(crate) const fn aged(self) -> bool {
        matches!(self.finder, Finder::Age)
    }
}

/// What is retransmitted whatever the window.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Retransmit {
    /// Nothing.
    #[default]
    Nothing,
    /// The first segment that is not acknowledged.
    First(RetransmitCause),
    /// The first segment that is marked lost.
    FirstLost,
    /// New data or the last segment, to probe (RFC 8985 §7.3).
    Probe,
    /// New data in a larger segment, to probe the path MTU (RFC 4821).
    MtuProbe,
}

/// What the steady state does not touch.
#[derive(Debug)]
pub(crate) struct Cold {
    /// Number of the first octet of our stream.
    pub(crate) first_octet: Seq,
    pub(crate) timer_rule: Option<Box<TimerRuleState>>,
    /// What the recoveries beyond RFC 6675 keep.
    pub(crate) watch: Option<Box<Watch>>,
    /// Changes of the window, if they are kept.
    windows: Option<Box<WindowLog>>,
    /// SACK options that were refused.
    pub(crate) refused: Option<Box<Refusals>>,
    /// How long a paced burst takes at the rate, in microseconds.
    burst_us: u16,
    /// Made when it is needed.
    pub(crate) extras: Option<Box<Extras>>,
    /// How long each limit has held.
    pub(crate) limits: LimitAccount,
    /// The send buffer had no room for all of the last write.
    write_was_cut: bool,
}

/// What only some stacks need.
#[derive(Debug, Default)]
pub(crate) struct Extras {
    pub(crate) ecn: SenderEcn,
    rate: RateSampler,
    validation: Option<Box<Validation>>,
    /// How far the send buffer has grown.
    send_space: u64,
    /// The application is writing until then, and has not found the send buffer full; never if it waits.
    writes_until: Option<Instant>,
    /// SND.UNA when the send buffer was found full, until the application has written again; for delivery-rate samples.
    blocked_at: Option<Seq>,
    /// Octets that may still leave before their time ([`Sender::pace`]).
    burst: u64,
    /// When the last paced segment left.
    burst_at: Instant,
    /// So much later than it might have the burst under way has begun to leave, less what has been taken off its time
    /// ([`Segmentation`](crate::policy::Segmentation)).
    late: Duration,
    unfilled: Unfilled,
    /// Where the piece ends of what the application writes that is being sent. None, or SND.NXT and before: it has to be measured.
    piece_end: Option<Seq>,
    /// Where probes search for the path MTU.
    search: Option<path_mtu::Search>,
}

/// What was outstanding where something other than cwnd held data back ([`WindowRules`](crate::policy::WindowRules)).
#[derive(Debug, Default)]
struct Unfilled {
    /// The most octets at once since what was outstanding then was acknowledged.
    most: u64,
    /// The acknowledgment of this ends the round trip.
    until: Option<Seq>,
}

impl Cold {
    pub(crate) fn extras(&mut self) -> &mut Extras {
        self.extras.get_or_insert_default()
    }
}

impl<B: Body> Sender<B> {
    /// A sender whose SYN has the number `first`.
    pub(crate) fn new(settings: &Arc<Settings>, control: Control, first: Seq) -> Self {
        let mut board = Scoreboard::default();
        let wants = control.wants();
        if wants.losses {
            board.note_losses();
        }
        Self {
            settings: Arc::clone(settings),
            agreed: Agreed {
                guided: false,
                finder: if settings.timers.count_ticks() {
                    Finder::DuplicatesAttended
                } else {
                    Finder::Duplicates
                },
                tlp: false,
                timestamps: settings.timestamps,
                ecn: false,
            },
            wake: false,
            retransmit: Retransmit::Nothing,
            stream: Stream::Open,
            smss: settings.mss,
            retries: Retries::new(),
            timer: Timer::Off,
            timer_at: Instant::NEVER,
            stats: SenderStats::default(),
            limit: SendLimit::Application,
            peer: PeerWindow::new(first),
            nxt: first,
            capacity: settings.send_buffer_bytes(),
            write_edge: first,
            written_anew_at: first,
            reserved: 0,
            timed: false,
            probing: Probing::Free,
            rated: wants.rate_samples,
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
            control: Attached::new(control),
            cold: Box::new(Cold {
                first_octet: first + 1,
                timer_rule: None,
                watch: None,
                windows: None,
                refused: None,
                burst_us: wants.burst_us.unwrap_or(pacing::BURST_US),
                extras: None,
                limits: LimitAccount::default(),
                write_was_cut: false,
            }),
        }
    }

    /// Finds losses by `rule` besides ([`Config::timer_rule`](anabranch_congestion::Config::timer_rule)).
    pub(crate) fn find_losses_by(&mut self, rule: Option<TimerRule>) {
        self.timed = rule.is_some();
        self.cold.timer_rule = rule.map(|rule| Box::new(TimerRuleState::new(rule, self.peer.una())));
    }
}
