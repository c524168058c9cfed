//! State machine of a port.
//!
//! The standard's machines that are implemented are receiving (current, expired, defaulted,
//! §6.4.12), periodic transmission (§6.4.13) and the mux with independent control of collecting and
//! distributing (§6.4.15). The mux is level-triggered instead of edge-triggered: the last received
//! state decides. PDUs that are lost, duplicated or cross each other thus delay the agreement of
//! both ends and do not change it.
//!
//! One end *leads*: it selects and deselects ports. The other follows the received state. An end
//! distributes on a port only after it has received that the other collects, and collects until it
//! has received that the other no longer distributes.
//!
//! LACPDUs have no sequence numbers, so an answer to a port that was deselected might be an old
//! one, from before it was selected again. Therefore the leading end changes its synchronization
//! bit only after the other has confirmed the last change, as an alternating bit (Bartlett,
//! Scantlebury and Wilkinson, Communications of the ACM 12(5), 1969); the other confirms at once.
//! Decisions made meanwhile are applied then. The leading end stops distributing at once in any
//! case. Over a link that reorders packets this protection fails.
//!
//! # Not implemented
//! - Selection of an aggregator among several (§6.4.14): a port has one.
//! - Churn detection (§6.4.17).

use anabranch_core::units::{Duration, Instant};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::pdu::{Information, Lacpdu, State};

/// Interval at which an end requests LACPDUs (`LACP_Timeout`, IEEE 802.1AX-2014 §6.4.13).
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
    /// Time between PDUs.
    #[must_use]
    pub const fn period(self) -> Duration {
        match self {
            Self::Fast => Duration::from_secs(1),
            Self::Slow => Duration::from_secs(30),
        }
    }
    /// Time for which received information is valid.
    #[must_use]
    pub fn timeout(self) -> Duration {
        self.period() * 3
    }
}

/// Role of a port's end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// The measuring end: it selects ports.
    Leads,
    /// The other end: it is ready whenever its partner is ready.
    Follows,
}

/// Source of a port's information on its partner.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Receive {
    /// `PORT_DISABLED`: the port sleeps.
    Disabled,
    /// `CURRENT`: a received PDU.
    Current,
    /// `EXPIRED`: no PDU has been received for too long.
    Expired,
    /// `DEFAULTED`: the configuration, a working partner.
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
    /// Decision of the leading end; `selected` is the announced one.
    wanted: bool,
    selected: bool,
    /// Whether the partner has confirmed the last change of the synchronization bit.
    acknowledged: bool,
    receive: Receive,
    /// `current_while_timer`.
    current_while: Instant,
    periodic: Instant,
    /// `NTT`: a PDU needs to be transmitted.
    ntt: bool,
}

/// System identifiers of both ends of a group: locally administered addresses.
const SYSTEMS: [[u8; 6]; 2] = [[2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2]];
/// Default priority of systems and ports.
const PRIORITY: u16 = 0x8000;
/// State bits of a member that works in both directions.
const WORKING: State = State(
    State::SYNCHRONIZATION.0 | State::COLLECTING.0 | State::DISTRIBUTING.0 | State::AGGREGATION.0,
);
/// State bits of participation.
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
    /// Creates port `number` (from 1) of a group that works at `now`: both ends have received each
    /// other's state.
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

    /// Selects or deselects the port at the leading end.
    pub fn select(&mut self, on: bool) {
        debug_assert!(self.role == Role::Leads, "the other end follows");
        self.wanted = on;
        self.update();
    }
    /// Whether the port is to be a member.
    #[must_use]
    pub fn is_selected(&self) -> bool {
        self.wanted
    }

    /// Disables the port, because it or its partner goes to sleep: it neither receives nor sends
    /// PDUs.
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
    /// Enables the port after it has woken up (§6.4.12: `EXPIRED` until a PDU is received).
    pub fn enable(&mut self, now: Instant) {
        self.expire(now);
        self.periodic = now + LacpRate::Fast.period();
        self.selected = self.wanted;
        self.update();
        self.ntt = true;
    }

    /// Handles a received PDU.
    pub fn on_pdu(&mut self, now: Instant, pdu: &Lacpdu) {
        if self.receive == Receive::Disabled {
            return;
        }
        let sync = State::SYNCHRONIZATION;
        let same = pdu.partner.is_same_port(&self.actor);
        self.acknowledged = same && pdu.partner.state.has(sync) == self.actor.state.has(sync);
        // A change of the partner's bit is confirmed at once.
        self.ntt |=
            self.role == Role::Follows && pdu.actor.state.has(sync) != self.partner.state.has(sync);
        // recordPDU: a partner whose PDU names another port is not in sync with this port.
        self.partner = pdu.actor;
        if !same {
            self.partner.state = self.partner.state.with(sync, false);
        }
        self.receive = Receive::Current;
        self.current_while = now + self.rate.timeout();
        self.update();
        // update_NTT: the partner does not know the current state.
        let compared =
            State::ACTIVITY.0 | State::TIMEOUT.0 | State::AGGREGATION.0 | State::SYNCHRONIZATION.0;
        self.ntt |= !same || (pdu.partner.state.0 ^ self.actor.state.0) & compared != 0;
    }

    /// When to call [`Self::on_deadline`].
    #[must_use]
    pub fn deadline(&self) -> Instant {
        self.current_while.min(self.periodic)
    }

    /// Handles timers that have expired.
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

    /// §6.4.12: out of sync, requesting fast PDUs for three seconds.
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

    /// The mux: derives the state from the selection and the received state.
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

    /// Returns a PDU if one needs to be transmitted.
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

    /// State of this port.
    #[must_use]
    pub fn state(&self) -> State {
        self.actor.state
    }
    /// Whether packets may be sent over this port.
    #[must_use]
    pub fn distributes(&self) -> bool {
        self.actor.state.has(State::DISTRIBUTING)
    }
    /// Whether the port may sleep: it is not selected, has no PDU to send, and the partner has
    /// confirmed the deselection and no longer distributes.
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
