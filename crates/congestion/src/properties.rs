//! Properties of a built-in control, derived from its parameters before the control is created.

use anabranch_core::units::Duration;

use super::{hystart, params};

/// Congestion signal that a control reacts to. The law suite has separate checks for each family.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Family {
    /// Losses and marks.
    LossBased,
    /// Growing delay, in addition to losses.
    DelayBased,
    /// A model of the path: its rate and its propagation delay.
    ModelBased,
}

/// Properties of every built-in control, by its parameters.
pub trait ControlParams: Default {
    /// The congestion signal of the control.
    const FAMILY: Family;
    /// [`Self::FAMILY`], callable on a value.
    fn family(&self) -> Family {
        Self::FAMILY
    }
    /// The share of the window that remains after a loss; `None` if it is not a constant.
    fn decrease_factor(&self) -> Option<f64> {
        None
    }
    /// The loss detection that is part of the control, if any.
    fn timer_rule(&self) -> Option<TimerRule> {
        None
    }
    /// The early ends of slow start that the control supports.
    fn hystart(&self) -> HyStartUse {
        HyStartUse::None
    }
    /// The control computes a pacing rate, so that its data is paced whatever the stack does.
    fn sets_its_rate(&self) -> bool {
        false
    }
    /// The control is for L4S (RFC 9331 §4): its packets are ECT(1).
    fn is_l4s(&self) -> bool {
        false
    }
    /// The control needs the number of marked bytes, not only the presence of marks.
    fn needs_exact_marks(&self) -> bool {
        false
    }
}

/// The early ends of slow start that a control supports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HyStartUse {
    /// None: the control has no slow start, or ends it by its own rule.
    None,
    /// Only HyStart++, if the stack enables it.
    Rfc9406,
    /// All, selected by this parameter of the control.
    Any(params::OrStack<hystart::Kind>),
}

/// Loss detection by send time that is part of a control and replaces the stack's recovery (the
/// RACK-like rule of the reordering study).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TimerRule {
    /// Grace time before any reordering has been seen.
    pub initial_reo_wnd: Duration,
    /// Grace time once reordering has been seen, as a share of the smallest RTT.
    pub reo_wnd_min_rtt_share: f64,
}
