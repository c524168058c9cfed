//! The receiving half of a connection.
//!
//! It owns reassembly, the receive window and its autotuning, the acknowledgment policy and the
//! echo of marks, and builds the header of every segment.

mod autotuning;
mod data;
mod ecn;
mod header;
mod read;

use std::sync::Arc;

use anabranch_core::body::Body;

use self::{autotuning::Tuner, data::Reports, ecn::ReceiverEcn};
use crate::{
    ack::AckPolicy, receive_buffer::ReceiveBuffer, settings::Settings, stats::ReceiverStats,
};
use anabranch_core::units::Instant;
use anabranch_wire::seq::Seq;

/// The receiving half; see the module.
#[derive(Debug)]
#[expect(clippy::struct_excessive_bools, reason = "facts of their own")]
pub(crate) struct Receiver<B> {
    pub(crate) settings: Arc<Settings>,
    pub(crate) agreed: Agreed,
    /// Payload octets of a full segment: the smaller of ours and the peer's.
    pub(crate) smss: u32,
    pub(crate) stats: ReceiverStats,
    pub(crate) auto_read: bool,
    /// TS.Recent (RFC 7323 §4.3)
    pub(crate) ts_recent: u32,
    /// When TS.Recent was taken ([`crate::clock::age_tick`]).
    pub(crate) ts_recent_at: u16,
    /// RCV.NXT
    pub(crate) nxt: Seq,
    /// RCV.NXT + RCV.WND as last advertised.
    pub(crate) edge: Seq,
    /// Last.ACK.sent (RFC 7323 §4.3)
    pub(crate) acked: Seq,
    /// Octets of the receive buffer, limited to the largest scaled window.
    pub(crate) window: u64,
    /// The window field last sent, since windows are scaled.
    pub(crate) field: u16,
    /// The current window has been advertised.
    pub(crate) advertised: bool,
    /// Data has arrived beyond a gap.
    pub(crate) gaps: bool,
    /// A gap was filled and its octets are unread: the acknowledgment is sent before the
    /// application reads.
    filled: bool,
    /// A duplicate is to be reported (RFC 2883).
    pub(crate) duplicate: bool,
    pub(crate) ack: AckPolicy,
    pub(crate) cold: Box<Cold<B>>,
}

/// Results of the negotiation that concern the receiver.
#[derive(Debug, Clone, Copy)]
#[expect(clippy::struct_excessive_bools, reason = "facts of their own")]
pub(crate) struct Agreed {
    pub(crate) sack: bool,
    pub(crate) timestamps: bool,
    /// Marks are reported.
    pub(crate) ecn: bool,
    /// Every segment may report marks, or their end.
    pub(crate) exact_ecn: bool,
    /// The receive window is autotuned.
    pub(crate) tuned: bool,
    pub(crate) scaling: bool,
    /// Shift of the windows that we advertise.
    pub(crate) scale: u8,
}

/// State that the steady state does not touch.
#[derive(Debug)]
pub(crate) struct Cold<B> {
    /// Created when a segment arrives out of order or data is to be read.
    pub(crate) receive: Option<Box<ReceiveBuffer<B>>>,
    /// Octets by which the advertised right edge exceeds the intended one, because of rounding.
    rcv_rounded: u16,
    /// IRS: number of the peer's SYN, as in the header.
    pub(crate) irs: u32,
    /// Number of the peer's FIN while data before it is missing; [`Seq::END`] otherwise.
    pub(crate) peer_fin: Seq,
    /// Created when needed.
    pub(crate) extras: Option<Box<Extras>>,
}

/// State that only some stacks need.
#[derive(Debug, Default)]
pub(crate) struct Extras {
    pub(crate) ecn: ReceiverEcn,
    tuner: Tuner,
    reports: Reports,
}

impl<B> Cold<B> {
    pub(crate) fn extras(&mut self) -> &mut Extras {
        self.extras.get_or_insert_default()
    }
}

impl<B: Body> Receiver<B> {
    /// Whether everything received is acknowledged, and the current window advertised.
    pub(crate) fn has_answered(&self) -> bool {
        self.nxt == self.acked
            && self.advertised
            && !self.ack.is_waiting()
            && self.ack.deadline() == Instant::NEVER
    }

    /// Whether only the next segment can change the state: nothing is unread or to be reported, and
    /// no acknowledgment is due.
    pub(crate) fn is_at_rest(&self) -> bool {
        self.auto_read
            && !self.filled
            && !self.duplicate
            && !self.agreed.ecn
            && !self.agreed.exact_ecn
            && !self.ack.waits_for_read()
            && !self.ack.due()
    }

    pub(crate) fn new(settings: &Arc<Settings>) -> Self {
        let window = settings.first_receive_window();
        Self {
            settings: Arc::clone(settings),
            agreed: Agreed {
                sack: settings.sack,
                timestamps: settings.timestamps,
                ecn: false,
                exact_ecn: false,
                tuned: settings.receive_autotuning,
                scaling: false,
                scale: 0,
            },
            smss: settings.mss,
            stats: ReceiverStats::default(),
            auto_read: true,
            ts_recent: 0,
            ts_recent_at: 0,
            nxt: Seq::first(0),
            edge: Seq::first(0),
            acked: Seq::first(0),
            window,
            field: 0,
            advertised: false,
            gaps: false,
            filled: false,
            duplicate: false,
            ack: AckPolicy::new(settings.delayed_ack).with_window(window / u64::from(settings.mss)),
            cold: Box::new(Cold {
                receive: None,
                rcv_rounded: 0,
                irs: 0,
                peer_fin: Seq::END,
                extras: None,
            }),
        }
    }
}
