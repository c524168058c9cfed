//! The sending half of a connection.
//!
//! [`Sender`] composes the parts of it: the peer's window, the send queue, the congestion window, pacing, loss recovery, and the
//! search for the path MTU. Its methods that put a segment together take the [`Receiver`](crate::receiver::Receiver), whose
//! acknowledgment and window every segment carries.

mod acknowledgment;
mod fast_recovery;
mod limit;
mod loss_timers;
mod output;
mod remedy;
mod sack;
mod timers;
mod transmission;
mod watch;

use std::sync::Arc;

use anabranch_congestion::{CongestionControl, Control, TimerRule};
use anabranch_core::{
    body::Body,
    units::{Instant, Rate},
};

pub(crate) use self::{acknowledgment::Outcome, timers::Timer};
use crate::{
    cause::RetransmitCause,
    congestion_window::CongestionWindow,
    ecn::sender::EcnSender,
    mtu_search::MtuSearch,
    pacer::{Pacer, RateBasis},
    peer_window::PeerWindow,
    recovery::{RecoveryState, timer_rule::TimerRuleState, tlp::Probing, watch::Watch},
    refusal::Refusals,
    retries::Retries,
    rtt::RttEstimator,
    scoreboard::Scoreboard,
    send_buffer::SendBuffer,
    send_limit::LimitAccount,
    send_queue::{Chunks, Refill, SendQueue},
    seq::Seq,
    settings::Settings,
    stats::SenderStats,
};

/// The sending half. See the module.
#[derive(Debug)]
pub(crate) struct Sender<B: Body> {
    pub(crate) settings: Arc<Settings>,
    pub(crate) agreed: Agreed,
    /// An event has come since nothing was left to send.
    pub(crate) wake: bool,
    /// A segment sent before, whatever the window.
    pub(crate) retransmit: Retransmit,
    /// Full segment in octets: ours or the peer's, whichever is smaller.
    pub(crate) smss: u32,
    pub(crate) retries: Retries,
    pub(crate) timer: Timer,
    pub(crate) timer_at: Instant,
    pub(crate) stats: SenderStats,
    /// What limits the sender, as of when nothing more could leave, and how long each limit has held.
    pub(crate) limits: LimitAccount,
    /// SND.UNA and the send window.
    pub(crate) peer: PeerWindow,
    /// SND.NXT
    pub(crate) nxt: Seq,
    pub(crate) queue: SendQueue<B>,
    /// A timer rule is at work.
    pub(crate) timed: bool,
    /// State of the last probe (RFC 8985 §7.3, §7.4).
    pub(crate) probing: Probing,
    pub(crate) pacer: Pacer,
    pub(crate) window: CongestionWindow,
    pub(crate) mtu: MtuSearch,
    pub(crate) ecn: EcnSender,
    pub(crate) rtt: RttEstimator,
    pub(crate) recovery: RecoveryState,
    pub(crate) board: Scoreboard,
    pub(crate) cold: Box<Cold>,
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
    pub(crate) timer_rule: Option<Box<TimerRuleState>>,
    /// What the recoveries beyond RFC 6675 keep.
    pub(crate) watch: Option<Box<Watch>>,
    /// SACK options that were refused.
    pub(crate) refused: Option<Box<Refusals>>,
}

impl<B: Body> Sender<B> {
    /// A sender whose SYN has the number `first`.
    pub(crate) fn new(settings: &Arc<Settings>, control: Control, first: Seq) -> Self {
        let mut board = Scoreboard::default();
        if control.wants().losses {
            board.note_losses();
        }
        let window = CongestionWindow::new(settings, control, first);
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
            },
            wake: false,
            retransmit: Retransmit::Nothing,
            smss: settings.mss,
            retries: Retries::new(),
            timer: Timer::Off,
            timer_at: Instant::NEVER,
            stats: SenderStats::default(),
            limits: LimitAccount::default(),
            peer: PeerWindow::new(first),
            nxt: first,
            queue: SendQueue::new(settings, first),
            timed: false,
            probing: Probing::Free,
            pacer: Pacer::new(settings, &window),
            window,
            mtu: MtuSearch::new(settings.mtu_discovery),
            ecn: EcnSender::default(),
            rtt: RttEstimator::new(settings.initial_rto),
            recovery: RecoveryState::new(first),
            board,
            cold: Box::new(Cold {
                timer_rule: None,
                watch: None,
                refused: None,
            }),
        }
    }

    /// Finds losses by `rule` as well ([`Config::timer_rule`](anabranch_congestion::Config::timer_rule)).
    pub(crate) fn find_losses_by(&mut self, rule: Option<TimerRule>) {
        self.timed = rule.is_some();
        self.cold.timer_rule =
            rule.map(|rule| Box::new(TimerRuleState::new(rule, self.peer.una())));
    }

    /// Takes the first octets of `body`, as many as the send buffer has room for, and returns how many.
    pub(crate) fn write(&mut self, body: B) -> u64 {
        self.wake |= self.queue.is_appendable();
        self.queue
            .write(body, self.peer.una(), self.window.cwnd().get())
    }

    /// Appends the data that `write` writes, unless the stream has an end.
    pub(crate) fn append(&mut self, write: impl FnOnce(&mut SendBuffer<B>)) {
        self.wake |= self.queue.is_appendable();
        self.queue.append(write);
    }

    /// Octets that [`Self::write`] would take.
    pub(crate) fn write_room(&self) -> u64 {
        self.queue.room(self.peer.una(), self.window.cwnd().get())
    }

    /// The application fills the send buffer: it is woken, or has not yet found the buffer full.
    #[inline(never)]
    pub(crate) fn refill(&mut self, now: Instant) {
        let una = self.peer.una();
        if self
            .queue
            .refill_at_once(una, self.pacer.sends_bursts())
        {
            return;
        }
        let smss = u64::from(self.smss);
        let burst = u64::from(self.longest_burst()) * smss;
        let cwnd = self.window.cwnd().get();
        let writes = self.queue.refill(&Refill {
            now,
            una,
            smss,
            burst,
            window: cwnd.min(u64::from(self.peer.wnd())),
            nagle: self.settings.nagle,
        });
        if writes {
            self.on_write();
        }
    }

    /// The pacer, and what its rate follows from.
    fn pacing(&mut self) -> (&mut Pacer, RateBasis<'_>) {
        let basis = RateBasis {
            window: &self.window,
            rtt: &self.rtt,
            in_flight: self.board.in_flight(),
            smss: self.smss,
        };
        (&mut self.pacer, basis)
    }

    /// The rate to send at, if there is one yet.
    pub(crate) fn pacing_rate(&self) -> Option<Rate> {
        self.pacer.rate(&RateBasis {
            window: &self.window,
            rtt: &self.rtt,
            in_flight: self.board.in_flight(),
            smss: self.smss,
        })
    }

    /// Segments of a TSO burst at the current rate.
    #[inline]
    fn longest_burst(&mut self) -> u8 {
        let (pacer, basis) = self.pacing();
        pacer.longest_burst(&basis)
    }

    /// The position in the chunks of the send queue.
    fn chunks(&self) -> Chunks {
        Chunks {
            nxt: self.nxt,
            smss: u64::from(self.smss),
            initial_cwnd: self.settings.initial_cwnd,
        }
    }
}
