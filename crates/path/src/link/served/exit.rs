//! The end of a transmission: what impairments and the propagation delay make of the packet.

use anabranch_core::{
    packet::{Ecn, PacketId},
    rng::Stream,
    trace::ElementId,
    units::Instant,
};

use super::ServedLink;
use crate::{
    impair::{AnyImpairment, Impairment, Verdict, View},
    queue::Item,
};

/// An impairment with its own random stream and packet count.
#[derive(Debug)]
pub struct Impaired {
    /// Its number among the elements.
    pub element: ElementId,
    pub(super) impairment: AnyImpairment,
    stream: Stream,
    seen: u64,
}

impl Impaired {
    /// An impairment whose fates are drawn from `stream`.
    #[must_use]
    pub fn new(element: ElementId, impairment: AnyImpairment, stream: Stream) -> Self {
        Self {
            element,
            impairment,
            stream,
            seen: 0,
        }
    }
}

/// What becomes of a packet whose transmission has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Exit {
    /// The packet.
    pub packet: PacketId,
    /// Its number among the arrivals here.
    pub order: u32,
    /// When it arrives at the far end.
    pub at: Instant,
    /// Whether a second copy arrives with it.
    pub duplicate: bool,
}

/// Something an impairment did, for the observers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Impairing {
    /// Which element.
    pub element: ElementId,
    /// When.
    pub at: Instant,
    /// What.
    pub verdict: Verdict,
}

/// What a completed transmission led to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Completed {
    /// The packet goes on.
    Exit(Exit),
    /// An impairment loses or damages it.
    Lost {
        /// The packet.
        packet: PacketId,
        /// When, in flight.
        at: Instant,
    },
    /// The link sends it again by itself.
    Resending(PacketId),
    /// A pause ended; the packet is being retransmitted.
    Resumed(PacketId),
}

/// What impairments made of something in flight.
#[derive(Debug, Clone, Copy)]
pub(super) enum Travel {
    /// It arrives at this time, twice if `duplicate`.
    Through { at: Instant, duplicate: bool },
    /// It is lost or damaged at this time.
    Lost { at: Instant },
}

impl ServedLink {
    /// What the propagation delay and the impairments make of something that leaves now.
    #[expect(
        clippy::inline_always,
        reason = "every packet that leaves a served link comes this way"
    )]
    #[inline(always)]
    pub(super) fn travel(
        &mut self,
        now: Instant,
        (size, ecn, has_data): (u32, Ecn, bool),
        impairing: &mut Vec<Impairing>,
    ) -> Travel {
        let mut at = now + self.propagation.at(now);
        let mut duplicate = false;
        let mut in_order = true;
        for impaired in &mut self.impairments {
            let view = View {
                size,
                ecn,
                index: impaired.seen,
                has_data,
            };
            let mut draw = impaired.stream.at(impaired.seen);
            impaired.seen += 1;
            let verdict = impaired.impairment.judge(at, view, &mut draw);
            impairing.push(Impairing {
                element: impaired.element,
                at,
                verdict,
            });
            match verdict {
                Verdict::Pass => {}
                Verdict::Lose | Verdict::Corrupt => return Travel::Lost { at },
                Verdict::Delay { by, may_overtake } => {
                    at = at.saturating_add(by);
                    in_order &= !may_overtake;
                }
                Verdict::Duplicate => duplicate = true,
            }
        }
        if in_order && !self.reorders {
            // A route that stays FIFO: those behind a late packet wait for it.
            at = at.max(self.latest_exit);
        }
        self.latest_exit = self.latest_exit.max(at);
        Travel::Through { at, duplicate }
    }

    #[inline]
    pub(super) fn exit(
        &mut self,
        now: Instant,
        item: &Item,
        impairing: &mut Vec<Impairing>,
    ) -> Completed {
        match self.travel(now, (item.size, item.ecn, item.has_data), impairing) {
            Travel::Lost { at } => {
                if self.window.contains(at) {
                    self.statistics.lost_packets += 1;
                }
                Completed::Lost {
                    packet: item.packet,
                    at,
                }
            }
            Travel::Through { at, duplicate } => {
                if !self.reorders {
                    self.count_order(item.order, at);
                }
                if let Some(held) = &mut self.held {
                    held.add(at, item.size, 1 + u8::from(duplicate));
                }
                Completed::Exit(Exit {
                    packet: item.packet,
                    order: item.order,
                    at,
                    duplicate,
                })
            }
        }
    }

    /// RFC 4737 §3.3 by arrival at this link: the packet that came as number `order` has got
    /// through at `at`, and is reordered if one that came later did so before. Where packets may
    /// overtake each other the owner calls this as they arrive at the far end.
    pub fn count_order(&mut self, order: u32, at: Instant) {
        if order.wrapping_sub(self.next_order).cast_signed() >= 0 {
            self.next_order = order.wrapping_add(1);
        } else if order != self.last_order && self.window.contains(at) {
            // Of a doubled packet only the first to arrive counts; the copy comes right behind it.
            self.statistics.reordered_packets += 1;
        }
        self.last_order = order;
    }
}
