//! What the parameters of a built-in control say about it, before one is made.

use anabranch_core::units::Duration;

use super::{hystart, params};

/// What a control takes for congestion. The law suite asks every family its own questions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Family {
    /// Losses and marks.
    LossBased,
    /// Growing delay, besides losses.
    DelayBased,
    /// A model of the path: its rate and its propagation delay.
    ModelBased,
}

/// What the parameters of every built-in control can say.
pub trait ControlParams: Default {
    /// What the control takes for congestion.
    const FAMILY: Family;
    /// [`Self::FAMILY`], of a value.
    fn family(&self) -> Family {
        Self::FAMILY
    }
    /// The share of the window that a loss leaves; `None` where that is not a constant.
    fn decrease_factor(&self) -> Option<f64> {
        None
    }
    /// The loss detection that the control brings along, if any.
    fn timer_rule(&self) -> Option<TimerRule> {
        None
    }
    /// Which early ends of slow start the control knows.
    fn hystart(&self) -> HyStartUse {
        HyStartUse::None
    }
    /// The control gives a rate of its own, so that its data is paced whatever the stack does.
    fn sets_its_rate(&self) -> bool {
        false
    }
    /// The control is for L4S (RFC 9331 §4): its packets are ECT(1).
    fn is_l4s(&self) -> bool {
        false
    }
    /// The control needs to know which bytes were marked, not only that some were.
    fn needs_exact_marks(&self) -> bool {
        false
    }
}

/// Which early ends of slow start a control knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HyStartUse {
    /// It has no slow start to end, or ends it by a rule of its own.
    None,
    /// HyStart++ only, as the stack has it.
    Rfc9406,
    /// All, with this parameter of its own.
    Any(params::OrStack<hystart::Kind>),
}

/// Loss detection by send time that a control brings along and that replaces the stack's recovery
/// (the reordering study's RACK-like rule).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TimerRule {
    /// Grace time before any reordering has been seen.
    pub initial_reo_wnd: Duration,
    /// Grace time once reordering has been seen, as a share of the smallest RTT.
    pub reo_wnd_min_rtt_share: f64,
}
