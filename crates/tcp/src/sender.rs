//! The sending half of a connection.
//!
//! [`Sender`] composes its parts: the peer's window, the send queue, the congestion window, pacing,
//! loss recovery, and the search for the path MTU. Its methods that put a segment together take the
//! [`Receiver`](crate::receiver::Receiver), whose acknowledgment and window every segment carries.

mod acknowledgment;
mod limit;
mod output;

use std::sync::Arc;

use anabranch_congestion::{CongestionControl, Control};
use anabranch_core::{
    body::Body,
    units::{Instant, Rate},
};

pub(crate) use self::acknowledgment::Outcome;
use crate::{
    congestion_window::CongestionWindow,
    ecn::sender::EcnSender,
    mtu_search::MtuSearch,
    pacer::{Pacer, RateBasis},
    peer_window::PeerWindow,
    recovery::{Recovery, Scope},
    rtt::RttEstimator,
    send_buffer::SendBuffer,
    send_limit::LimitAccount,
    send_queue::{Refill, SendQueue},
    settings::Settings,
    stats::SenderStats,
};
use anabranch_wire::seq::Seq;

/// The sending half; see the module.
#[derive(Debug)]
#[expect(clippy::struct_excessive_bools, reason = "independent of each other")]
pub(crate) struct Sender<B: Body> {
    pub(crate) settings: Arc<Settings>,
    /// Both ends send timestamps (RFC 7323).
    pub(crate) timestamps: bool,
    /// An event occurred after output last found nothing to send.
    pub(crate) wake: bool,
    /// Nagle's algorithm is on.
    pub(crate) nagle: bool,
    /// The last data waits until it fills a segment (`TCP_CORK`).
    pub(crate) holds: bool,
    /// Payload octets of a full segment: the smaller MSS of both ends, then the result of path MTU
    /// discovery.
    pub(crate) smss: u32,
    /// SND.NXT
    pub(crate) nxt: Seq,
    /// SND.UNA and the send window.
    pub(crate) peer: PeerWindow,
    pub(crate) queue: SendQueue<B>,
    pub(crate) pacer: Pacer,
    pub(crate) window: CongestionWindow,
    pub(crate) recovery: Recovery,
    pub(crate) rtt: RttEstimator,
    pub(crate) mtu: MtuSearch,
    pub(crate) ecn: EcnSender,
    /// The limit of the sender when it last could send no more, and the time that each limit has
    /// held.
    pub(crate) limits: LimitAccount,
    pub(crate) stats: SenderStats,
}

impl<B: Body> Sender<B> {
    /// A sender whose SYN has the number `first`.
    pub(crate) fn new(settings: &Arc<Settings>, control: Control, first: Seq) -> Self {
        let mut recovery = Recovery::new(settings, first);
        if control.wants().losses {
            recovery.keep_loss_log();
        }
        let window = CongestionWindow::new(settings, control, first);
        Self {
            settings: Arc::clone(settings),
            timestamps: settings.timestamps,
            wake: false,
            nagle: settings.nagle,
            holds: false,
            smss: settings.mss,
            nxt: first,
            peer: PeerWindow::new(first),
            queue: SendQueue::new(settings, first),
            pacer: Pacer::new(settings, &window),
            window,
            recovery,
            rtt: RttEstimator::new(settings.initial_rto),
            mtu: MtuSearch::new(settings.mtu_discovery),
            ecn: EcnSender::default(),
            limits: LimitAccount::default(),
            stats: SenderStats::default(),
        }
    }

    /// Runs an event of loss recovery, and applies its effects on the rest of the sender.
    pub(crate) fn with_recovery<T>(
        &mut self,
        now: Instant,
        event: impl FnOnce(&mut Recovery, &mut Scope<'_>) -> T,
    ) -> T {
        let mut scope = Scope {
            now,
            una: self.peer.una(),
            nxt: self.nxt,
            smss: self.smss,
            settings: &self.settings,
            rtt: &mut self.rtt,
            window: &mut self.window,
            mtu: &mut self.mtu,
            stats: &mut self.stats,
            timed_out: false,
        };
        let result = event(&mut self.recovery, &mut scope);
        let Scope {
            smss, timed_out, ..
        } = scope;
        if timed_out {
            self.pacer.release();
        }
        if smss != self.smss {
            self.resize_segments(smss);
        }
        result
    }

    /// Restarts the retransmission timer for one timeout from now.
    pub(crate) fn restart_retransmission_timer(&mut self, now: Instant) {
        self.recovery.restart_timer(now, &self.rtt, &self.settings);
    }

    /// Stops retransmission timers and pacing, and cancels pending retransmissions.
    pub(crate) fn stop(&mut self) {
        self.recovery.stop();
        self.pacer.release();
    }

    /// A router did not carry the segment at `start` over a link of this MTU (RFC 1191 §6.4, RFC
    /// 8201 §5.4). One that is not outstanding was not ours (RFC 5927 §4). Returns whether segments
    /// are smaller from here on.
    pub(crate) fn on_packet_too_big(&mut self, now: Instant, start: Seq, mtu: u32) -> bool {
        if start < self.peer.una() || start >= self.nxt {
            return false;
        }
        let most = self.mtu.on_packet_too_big(mtu, self.timestamps);
        let Some(most) = most.filter(|most| *most < self.smss) else {
            return false;
        };
        self.resize_segments(most);
        self.wake |= self.with_recovery(now, Recovery::split_segments);
        true
    }

    /// The connection is open: segments are small at first if probes search for the path MTU from
    /// the start.
    pub(crate) fn begin_mtu_search(&mut self) {
        if let Some(size) = self.mtu.begin(self.smss) {
            self.resize_segments(size);
        }
    }

    /// Sets the size of segments to `smss`; bursts and chunks are measured again.
    fn resize_segments(&mut self, smss: u32) {
        self.smss = smss;
        self.queue.resize_chunks();
        self.pacer.on_rate_change();
    }

    /// Takes the first octets of `body`, as many as the send buffer has room for, and returns how
    /// many.
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
        if self.queue.refill_at_once(una, self.pacer.sends_bursts()) {
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
            nagle: self.nagle,
        });
        if writes {
            self.on_write();
        }
    }

    /// The pacer, and the inputs of its rate.
    fn pacing(&mut self) -> (&mut Pacer, RateBasis<'_>) {
        let basis = RateBasis {
            window: &self.window,
            rtt: &self.rtt,
            in_flight: self.recovery.in_flight(),
            smss: self.smss,
        };
        (&mut self.pacer, basis)
    }

    /// The rate to send at, if there is one yet.
    pub(crate) fn pacing_rate(&self) -> Option<Rate> {
        self.pacer.rate(&RateBasis {
            window: &self.window,
            rtt: &self.rtt,
            in_flight: self.recovery.in_flight(),
            smss: self.smss,
        })
    }

    /// Segments of a TSO burst at the current rate.
    #[inline]
    pub(crate) fn longest_burst(&mut self) -> u8 {
        let (pacer, basis) = self.pacing();
        pacer.longest_burst(&basis)
    }
}
