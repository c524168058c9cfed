//! What the recoveries beyond RFC 6675 keep for a connection. Connections that use none of them
//! have none of it.

use anabranch_core::units::Instant;

use super::{frto::Frto, pace::Pace, rack::Rack, reordering::Reordering, tlp::Tlp, undo::Undo};
use crate::remedy::{self, Remedy, late::Arrivals};
use crate::{
    policy::{Recovery, RecoveryPace},
    settings::Settings,
};
use anabranch_wire::seq::Seq;

/// The state of all of them.
#[derive(Debug)]
pub struct Watch {
    /// RACK (RFC 8985 §6).
    pub rack: Rack,
    /// Tail loss probes (RFC 8985 §7).
    pub tlp: Tlp,
    /// What lets segments leave, during a recovery.
    pub pace: Option<Pace>,
    /// The last reduction, while it may be taken back.
    pub undo: Undo,
    /// Forward RTO recovery (RFC 5682).
    pub frto: Frto,
    /// The threshold that follows the reordering.
    pub reordering: Reordering,
    /// What duplicates stand for, where a remedy decides that.
    pub remedy: Option<Box<Remedied>>,
    /// When the retransmission timer expires; what runs may be another timer before it.
    pub rto_at: Instant,
}

impl Watch {
    /// For a connection whose first octet is `first`; `None` if `settings` want nothing of it.
    #[must_use]
    pub fn new(settings: &Settings, first: Seq) -> Option<Box<Self>> {
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
                rto_at: Instant::NEVER,
            })
        })
    }
}

/// A remedy at work, and what it is told by.
#[derive(Debug)]
pub struct Remedied {
    /// The remedy.
    pub policy: Remedy,
    /// How late segments were that had been retransmitted.
    pub arrivals: Arrivals,
    /// Segments that have outlived their age in this recovery.
    pub overdue: u32,
}
