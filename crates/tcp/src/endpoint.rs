//! One end of a connection.
//!
//! Sans-I/O: the owner hands in segments ([`Endpoint::on_segment`]), the application's wishes
//! ([`Endpoint::write`], [`Endpoint::close`], …) and the time ([`Endpoint::on_deadline`], once
//! [`Endpoint::deadline`] has come), and after each of them takes what is to be sent
//! ([`Endpoint::poll_transmit`], until `None`).
//!
//! An endpoint is a `Sender`, a `Receiver`, and the state of the connection (RFC 9293 §3.3.2): it opens, closes and gives up, decides
//! which segments are acceptable, hands acknowledgments to the one and data to the other, and asks both for what is to be sent.

mod acknowledgment;
mod application;
mod close;
mod control_segments;
mod give_up;
mod handshake;
mod input;
mod layered;
mod output;
mod path_mtu;
mod timers;
mod view;

use std::sync::Arc;

use anabranch_core::{body::Body, units::Instant};

use crate::{
    receiver::Receiver,
    refusal::{Refusal, Refusals},
    sender::Sender,
    settings::Settings,
    state::{Event, State},
};
use anabranch_congestion::{Control, TimerRule};
use anabranch_wire::seq::Seq;

/// Which end opens the connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// It sends the SYN when told to.
    Active,
    /// It waits for one.
    Passive,
}

/// What is to be sent besides data.
#[derive(Debug, Clone, Copy, Default)]
#[expect(clippy::struct_excessive_bools, reason = "wishes of their own")]
struct Wanted {
    /// Some of the others, or a RST ([`give_up::Failure::reset`]).
    urgent: bool,
    /// SYN, with or without acknowledgment.
    syn: bool,
    /// A window probe.
    probe: bool,
    /// An acknowledgment ahead of data that could carry it.
    ack: bool,
    /// An acknowledgment, and no data after it.
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
    settings: Arc<Settings>,
    snd: Sender<B>,
    rcv: Receiver<B>,
    cold: Box<Cold>,
}

/// What the steady state does not touch.
#[derive(Debug)]
struct Cold {
    /// Made when there is something to note.
    notes: Option<Box<Notes>>,
    /// It waited for the SYN.
    passive: bool,
    /// Made when something gets no answer, or the connection ends badly.
    failure: Option<Box<give_up::Failure>>,
    /// Octets of the largest segment that a peer takes which advertises no MSS.
    default_mss: u16,
}

/// What is noted for those who look at a connection from outside.
#[derive(Debug, Default)]
struct Notes {
    /// What was refused.
    refused: Refusals,
    /// When a challenge last left (RFC 5961 §7).
    challenged: Option<Instant>,
}

impl Cold {
    fn failure(&mut self) -> &mut give_up::Failure {
        self.failure.get_or_insert_default()
    }
    /// How the connection ended other than by FIN, and when.
    fn ended(&self) -> Option<(Ending, Instant)> {
        self.failure.as_ref()?.ended
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
        Self {
            state: match role {
                Role::Active => State::Closed,
                Role::Passive => State::Listen,
            },
            wanted: Wanted::default(),
            settings: Arc::clone(settings),
            snd: Sender::new(settings, control, Seq::first(iss)),
            rcv: Receiver::new(settings),
            cold: Box::new(Cold {
                notes: None,
                passive: role == Role::Passive,
                failure: None,
                default_mss: handshake::DEFAULT_MSS,
            }),
        }
    }

    /// Finds losses by `rule` besides ([`Config::timer_rule`](anabranch_congestion::Config::timer_rule)).
    #[must_use]
    pub fn with_timer_rule(mut self, rule: Option<TimerRule>) -> Self {
        let una = self.snd.peer.una();
        self.snd.recovery.find_losses_by(rule, una);
        self
    }

    /// When [`Self::on_deadline`] wants to be called; [`Instant::NEVER`] if not at all.
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
