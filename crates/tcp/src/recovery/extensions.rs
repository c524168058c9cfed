//! State of the algorithms beyond RFC 6675. Connections that use none of them allocate none of it.

use super::{frto::Frto, pace::Pace, rack::Rack, reordering::Reordering, tlp::Tlp, undo::Undo};
use crate::{
    policy::{Recovery, RecoveryPace},
    remedy::{self, Policy, Remedy, late::Arrivals},
    settings::Settings,
};
use anabranch_wire::seq::Seq;

/// State of the algorithms beyond RFC 6675.
#[derive(Debug)]
pub(super) struct Extensions {
    /// RACK (RFC 8985 §6).
    pub(super) rack: Rack,
    /// Tail loss probes (RFC 8985 §7).
    pub(super) tlp: Tlp,
    /// Limit on transmission during a recovery.
    pub(super) pace: Option<Pace>,
    /// The last reduction, while it can still be undone.
    pub(super) undo: Undo,
    /// Forward RTO recovery (RFC 5682).
    pub(super) frto: Frto,
    /// The duplicate threshold that adapts to reordering.
    pub(super) reordering: Reordering,
    /// The remedy that sets the threshold instead, if configured.
    pub(super) remedy: Option<Box<Remedied>>,
}

impl Extensions {
    /// Creates the state for a connection whose first octet is `first`; `None` if `settings` use
    /// none of the algorithms.
    pub(super) fn new(settings: &Settings, first: Seq) -> Option<Box<Self>> {
        let wanted = settings.recovery == Recovery::Rack
            || settings.recovery_pace != RecoveryPace::Pipe
            || settings.frto
            || settings.eifel
            || settings.undo
            || settings.adapts_dupthresh()
            || settings.reordering.is_some();
        wanted.then(|| {
            Box::new(Self {
                rack: Rack::new(first),
                tlp: Tlp::default(),
                pace: None,
                undo: Undo::default(),
                frto: Frto::Off,
                reordering: Reordering::new(settings.dupthresh, settings.max_dupthresh),
                remedy: settings.reordering.as_ref().map(|choice| {
                    Box::new(Remedied {
                        policy: choice.0.build(&remedy::Init {
                            dupthresh: settings.dupthresh,
                        }),
                        arrivals: Arrivals::default(),
                        overdue: 0,
                    })
                }),
            })
        })
    }

    /// Duplicates that indicate a loss.
    pub(super) fn dupthresh(&self, settings: &Settings) -> u32 {
        match &self.remedy {
            Some(remedy) => remedy.policy.dupthresh(),
            None if settings.adapts_dupthresh() => self.reordering.dupthresh(),
            None => settings.dupthresh,
        }
    }
}

/// An active remedy.
#[derive(Debug)]
pub(super) struct Remedied {
    pub(super) policy: Remedy,
    /// Lateness of segments that had been retransmitted.
    pub(super) arrivals: Arrivals,
    /// Segments that have exceeded their lifetime in this recovery.
    pub(super) overdue: u32,
}
