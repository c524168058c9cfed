//! One end of a connection.
//!
//! Sans-I/O: the owner passes segments ([`Endpoint::on_segment`]), calls of the application
//! ([`Endpoint::write`], [`Endpoint::close`], …) and the time ([`Endpoint::on_deadline`], at
//! [`Endpoint::deadline`]). After each of them it takes the segments to send
//! ([`Endpoint::poll_transmit`], until `None`).
//!
//! An endpoint is a `Sender`, a `Receiver`, and the state of the connection (RFC 9293 §3.3.2). It
//! opens, closes and gives up the connection, checks which segments are acceptable, passes
//! acknowledgments to the sender and data to the receiver, and queries both for segments to send.

mod acknowledgment;
mod application;
mod close;
mod control_segments;
mod fast_open;
mod give_up;
mod handshake;
mod hot;
mod input;
mod layered;
mod output;
mod path_mtu;
mod timers;
mod view;

pub use self::{
    fast_open::{FastOpenClient, FastOpenOutcome, FastOpenServer, most_syn_data},
    hot::{HotData, HotSend},
    view::Agreed,
};
use std::sync::Arc;

use anabranch_core::{body::Body, units::Instant};

use crate::{
    receiver::Receiver,
    refusal::{Refusal, Refusals},
    sender::Sender,
    settings::Settings,
    state::{Event, State},
};
use anabranch_congestion::{self as cc, Control, TimerRule};
use anabranch_wire::seq::Seq;

/// Which end opens the connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// The end that sends the SYN, after [`Endpoint::open`].
    Active,
    /// The end that waits for a SYN.
    Passive,
}

/// Control segments to be sent.
#[derive(Debug, Clone, Copy, Default)]
#[expect(clippy::struct_excessive_bools, reason = "wishes of their own")]
struct Wanted {
    /// One of the others is due, or a RST ([`give_up::Failure::reset`]).
    urgent: bool,
    /// SYN, with or without acknowledgment.
    syn: bool,
    /// A window probe.
    probe: bool,
    /// An acknowledgment before data that could carry it.
    ack: bool,
    /// An acknowledgment, with no data after it.
    answer: bool,
}

impl Wanted {
    /// Whether another control segment follows.
    const fn another(self) -> bool {
        self.syn || self.probe || self.ack || self.answer
    }
}

/// One end of a connection. See the module.
#[derive(Debug)]
pub struct Endpoint<B: Body> {
    state: State,
    wanted: Wanted,
    /// The settings permit the hot path.
    permits_hot: bool,
    settings: Arc<Settings>,
    snd: Sender<B>,
    rcv: Receiver<B>,
    cold: Box<Cold>,
}

/// State that the steady state does not touch.
#[derive(Debug)]
struct Cold {
    /// Created when there is an event to note.
    notes: Option<Box<Notes>>,
    /// This end waited for the SYN.
    passive: bool,
    /// Created when a segment is not acknowledged in time, or the connection fails.
    failure: Option<Box<give_up::Failure>>,
    /// Payload octets of the largest segment to a peer that advertises no MSS.
    default_mss: u16,
    /// The control's configuration, until the connection is open.
    control: Option<Box<cc::Config>>,
}

/// Events noted for observers of a connection, and rare state.
#[derive(Debug, Default)]
struct Notes {
    /// Refused segments, by reason.
    refused: Refusals,
    /// Time of the last challenge ACK (RFC 5961 §7).
    challenged: Option<Instant>,
    /// Present if the owner uses Fast Open.
    fast_open: Option<Box<fast_open::Opening>>,
}

impl Cold {
    fn failure(&mut self) -> &mut give_up::Failure {
        self.failure.get_or_insert_default()
    }
    fn fast_open(&self) -> Option<&fast_open::Opening> {
        self.notes.as_ref()?.fast_open.as_deref()
    }
    fn fast_open_mut(&mut self) -> Option<&mut fast_open::Opening> {
        self.notes.as_mut()?.fast_open.as_deref_mut()
    }
    fn begin_fast_open(&mut self) -> &mut fast_open::Opening {
        let notes = self.notes.get_or_insert_default();
        notes.fast_open.get_or_insert_default()
    }
    /// Cause and time of an end other than by FIN.
    fn ended(&self) -> Option<(Ending, Instant)> {
        self.failure.as_ref()?.ended
    }
}

/// How a connection ended other than by FIN.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// The peer reset it.
    Reset,
    /// The peer answered the SYN with a reset: no listener.
    Refused,
    /// This end aborted it.
    Aborted,
    /// Too many timeouts without progress (RFC 9293 §3.8.3).
    TimedOut,
    /// The application closed it before it was open (RFC 9293 §3.10.4).
    Abandoned,
}

impl<B: Body> Endpoint<B> {
    /// Returns an end in its initial state, with the control of `config` and its loss detection.
    /// The control counts in segments of the MSS that both ends agree on.
    #[must_use]
    pub fn controlled_by(
        settings: &Arc<Settings>,
        config: &cc::Config,
        role: Role,
        iss: u32,
    ) -> Self {
        let mut end = Self::new(settings, config.build(&settings.init()), role, iss)
            .with_timer_rule(config.timer_rule());
        end.cold.control = Some(Box::new(config.clone()));
        end
    }

    /// Returns an end in its initial state. `iss` is its initial sequence number. `control` should
    /// have been made for [`Settings::mss`] and [`Settings::initial_cwnd`]; it keeps this MSS even
    /// if the peer's is smaller ([`Self::controlled_by`]).
    #[must_use]
    pub fn new(settings: &Arc<Settings>, control: Control, role: Role, iss: u32) -> Self {
        Self {
            state: match role {
                Role::Active => State::Closed,
                Role::Passive => State::Listen,
            },
            wanted: Wanted::default(),
            permits_hot: hot::permits(settings),
            settings: Arc::clone(settings),
            snd: Sender::new(settings, control, Seq::first(iss)),
            rcv: Receiver::new(settings),
            cold: Box::new(Cold {
                notes: None,
                passive: role == Role::Passive,
                failure: None,
                default_mss: handshake::DEFAULT_MSS,
                control: None,
            }),
        }
    }

    /// Adds loss detection by `rule`
    /// ([`Config::timer_rule`](anabranch_congestion::Config::timer_rule)).
    #[must_use]
    pub fn with_timer_rule(mut self, rule: Option<TimerRule>) -> Self {
        let una = self.snd.peer.una();
        self.snd.recovery.find_losses_by(rule, una);
        self
    }

    /// Time of the next call of [`Self::on_deadline`]; [`Instant::NEVER`] for none.
    #[must_use]
    #[inline]
    pub fn deadline(&self) -> Instant {
        self.snd
            .recovery
            .deadline()
            .min(self.rcv.ack.deadline())
            .min(self.snd.pacer.deadline())
            .min(self.snd.window.deadline())
    }

    #[cold]
    #[inline(never)]
    fn refuse(&mut self, reason: Refusal) {
        self.rcv.stats.malformed += u64::from(reason.is_malformed());
        let notes = self.cold.notes.get_or_insert_default();
        notes.refused.count(reason);
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
