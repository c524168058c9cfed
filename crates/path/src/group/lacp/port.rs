//! The state machine of one port.
//!
//! Of the standard's machines there are receiving (current, expired, defaulted, §6.4.12), periodic
//! transmission (§6.4.13) and the mux with independent control of collecting and distributing
//! (§6.4.15), the last as rules of level instead of transitions: whatever has been heard last decides.
//! So PDUs that are lost, doubled or cross each other delay what both ends come to and change nothing of
//! it.
//!
//! One end *leads*: it selects ports and deselects them. The other follows what it hears. An end
//! distributes on a port only once it has heard that the other collects, and collects until it has heard
//! that the other no longer distributes.
//!
//! LACPDUs have no numbers, so an answer to a port that was deselected might be an old one, from the time
//! before it was selected again. Therefore the end that leads turns its synchronization bit only when the
//! other has told that it heard of the last turn, as an alternating bit (Bartlett, Scantlebury and Wilkinson,
//! Communications of the ACM 12(5), 1969); the other tells that at once. What was decided in between is done
//! then. It stops distributing at once in any case. Over a link that reorders packets this does not hold.
//!
//! # Not implemented
//! - Selection of an aggregator among several (§6.4.14): a port has one.
//! - Churn detection (§6.4.17).

use anabranch_core::units::{Duration, Instant};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::pdu::{Information, Lacpdu, State};

/// How often an end wants to hear from the other (`LACP_Timeout`, IEEE 802.1AX-2014 §6.4.13).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LacpRate {
    /// Every second (`Fast_Periodic_Time`); a port expires after 3 s.
    #[default]
    Fast,
    /// Every 30 s (`Slow_Periodic_Time`); a port expires after 90 s.
    Slow,
}

impl LacpRate {
    /// The time from one PDU to the next.
    #[must_use]
    pub const fn period(self) -> Duration {
        match self {
            Self::Fast => Duration::from_secs(1),
            Self::Slow => Duration::from_secs(30),
        }
    }
    /// How long a port believes what it heard.
    #[must_use]
    pub fn timeout(self) -> Duration {
        self.period() * 3
    }
}

/// Which end of a group a port is at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// The end that measures: it selects ports.
    Leads,
    /// The other: it is ready whenever it hears that its partner is.
    Follows,
}

/// What a port goes by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Receive {
    /// `PORT_DISABLED`: it sleeps.
    Disabled,
    /// `CURRENT`: what it heard.
    Current,
    /// `EXPIRED`: nothing was heard for long.
    Expired,
    /// `DEFAULTED`: what is configured, a partner that works.
    Defaulted,
}

/// A port.
#[derive(Debug, Clone)]
#[expect(clippy::struct_excessive_bools, reason = "facts of their own")]
pub struct Port {
    rate: LacpRate,
    role: Role,
    actor: Information,
    partner: Information,
    /// What the end that leads has decided, and what it has told.
    wanted: bool,
    selected: bool,
    /// The partner has heard of the last turn of the synchronization bit.
    acknowledged: bool,
    receive: Receive,
    /// `current_while_timer`.
    current_while: Instant,
    periodic: Instant,
    /// `NTT`: there is something to tell.
    ntt: bool,
}

/// What both ends of a group are called: locally administered addresses.
const SYSTEMS: [[u8; 6]; 2] = [[2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2]];
/// The default priority of systems and ports.
const PRIORITY: u16 = 0x8000;
/// The bits of a member that works both ways.
const WORKING: State = State(
    State::SYNCHRONIZATION.0 | State::COLLECTING.0 | State::DISTRIBUTING.0 | State::AGGREGATION.0,
);
/// The bits that say who takes part.
const PART: State = State(State::SYNCHRONIZATION.0 | State::COLLECTING.0 | State::DISTRIBUTING.0);

fn information(role: Role, number: u16, key: u16, rate: LacpRate) -> Information {
    let system = match role {
        Role::Leads => SYSTEMS[0],
        Role::Follows => SYSTEMS[1],
    };
    Information {
        system_priority: PRIORITY,
        system,
        key,
        port_priority: PRIORITY,
        port: number,
        state: WORKING
            .with(State::ACTIVITY, true)
            .with(State::TIMEOUT, rate == LacpRate::Fast),
    }
}

impl Port {
    /// Port `number` (from 1) of a group that works at `now`: both ends have heard of each other.
    #[must_use]
    pub fn working(now: Instant, role: Role, number: u16, rate: LacpRate) -> Self {
        let other = match role {
            Role::Leads => Role::Follows,
            Role::Follows => Role::Leads,
        };
        Self {
            rate,
            role,
            actor: information(role, number, 1, rate),
            partner: information(other, number, 1, rate),
            wanted: true,
            selected: true,
            acknowledged: true,
            receive: Receive::Current,
            current_while: now + rate.timeout(),
            periodic: now + rate.period(),
            ntt: false,
        }
    }

    /// The end that leads takes it in, or takes it out.
    pub fn select(&mut self, on: bool) {
        debug_assert!(self.role == Role::Leads, "the other end follows");
        self.wanted = on;
        self.update();
    }
    /// Whether it is meant to be taken in.
    #[must_use]
    pub fn is_selected(&self) -> bool {
        self.wanted
    }

    /// It goes to sleep, or its partner does: it hears and says nothing.
    pub fn disable(&mut self) {
        self.receive = Receive::Disabled;
        self.current_while = Instant::NEVER;
        self.periodic = Instant::NEVER;
        self.partner.state = self.partner.state.with(PART, false);
        self.selected = self.role == Role::Follows;
        self.acknowledged = false;
        self.update();
        self.ntt = false;
    }
    /// It has woken up (§6.4.12: `EXPIRED` until something is heard).
    pub fn enable(&mut self, now: Instant) {
        self.expire(now);
        self.periodic = now + LacpRate::Fast.period();
        self.selected = self.wanted;
        self.update();
        self.ntt = true;
    }

    /// A PDU arrived.
    pub fn on_pdu(&mut self, now: Instant, pdu: &Lacpdu) {
        if self.receive == Receive::Disabled {
            return;
        }
        let sync = State::SYNCHRONIZATION;
        let same = pdu.partner.is_same_port(&self.actor);
        self.acknowledged = same && pdu.partner.state.has(sync) == self.actor.state.has(sync);
        // What has been heard is told at once.
        self.ntt |=
            self.role == Role::Follows && pdu.actor.state.has(sync) != self.partner.state.has(sync);
        // recordPDU: a partner that takes us for somebody else is in sync with somebody else.
        self.partner = pdu.actor;
        if !same {
            self.partner.state = self.partner.state.with(sync, false);
        }
        self.receive = Receive::Current;
        self.current_while = now + self.rate.timeout();
        self.update();
        // update_NTT: the partner has not heard what we are.
        let compared =
            State::ACTIVITY.0 | State::TIMEOUT.0 | State::AGGREGATION.0 | State::SYNCHRONIZATION.0;
        self.ntt |= !same || (pdu.partner.state.0 ^ self.actor.state.0) & compared != 0;
    }

    /// When to call [`Self::on_deadline`].
    #[must_use]
    pub fn deadline(&self) -> Instant {
        self.current_while.min(self.periodic)
    }

    /// A timer may have run out.
    pub fn on_deadline(&mut self, now: Instant) {
        if self.current_while <= now {
            match self.receive {
                Receive::Current => self.expire(now),
                Receive::Expired => {
                    self.receive = Receive::Defaulted;
                    self.current_while = Instant::NEVER;
                    self.partner.state = self.partner.state.with(WORKING, true);
                }
                Receive::Disabled | Receive::Defaulted => {}
            }
            self.update();
        }
        if self.periodic <= now {
            self.ntt = true;
            let wants = if self.partner.state.has(State::TIMEOUT) {
                LacpRate::Fast
            } else {
                LacpRate::Slow
            };
            self.periodic = now + wants.period();
        }
    }

    /// §6.4.12: out of sync, and asking fast for three seconds.
    fn expire(&mut self, now: Instant) {
        self.receive = Receive::Expired;
        self.partner.state = self
            .partner
            .state
            .with(State::SYNCHRONIZATION, false)
            .with(State::TIMEOUT, true);
        self.current_while = now + LacpRate::Fast.timeout();
        self.periodic = self.periodic.min(now + LacpRate::Fast.period());
    }

    /// The mux: what follows from what is selected and what was heard.
    fn update(&mut self) {
        let enabled = self.receive != Receive::Disabled;
        if enabled && self.acknowledged && self.wanted != self.selected {
            self.selected = self.wanted;
            self.acknowledged = false;
        }
        let partner = self.partner.state;
        let sync = enabled && self.selected;
        let both = sync && partner.has(State::SYNCHRONIZATION);
        let state = self
            .actor
            .state
            .with(State::SYNCHRONIZATION, sync)
            .with(
                State::COLLECTING,
                both || enabled && partner.has(State::DISTRIBUTING),
            )
            .with(
                State::DISTRIBUTING,
                both && self.wanted && partner.has(State::COLLECTING),
            )
            .with(State::EXPIRED, self.receive == Receive::Expired)
            .with(State::DEFAULTED, self.receive == Receive::Defaulted);
        self.ntt |= state != self.actor.state;
        self.actor.state = state;
    }

    /// What there is to tell, once.
    pub fn take_pdu(&mut self) -> Option<Lacpdu> {
        if !std::mem::take(&mut self.ntt) || self.receive == Receive::Disabled {
            return None;
        }
        Some(Lacpdu {
            actor: self.actor,
            partner: self.partner,
            collector_max_delay: 0,
        })
    }

    /// Its own state.
    #[must_use]
    pub fn state(&self) -> State {
        self.actor.state
    }
    /// Whether packets may be sent here.
    #[must_use]
    pub fn distributes(&self) -> bool {
        self.actor.state.has(State::DISTRIBUTING)
    }
    /// Whether nothing keeps it awake: not selected, nothing to tell, and the partner has said that it
    /// has heard that and no longer distributes.
    #[must_use]
    pub fn may_sleep(&self) -> bool {
        self.role == Role::Leads
            && !self.wanted
            && !self.selected
            && self.acknowledged
            && !self.ntt
            && self.actor.state.0 & (State::COLLECTING.0 | State::DISTRIBUTING.0) == 0
    }
}
