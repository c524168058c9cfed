//! The end of a transmission: impairments and propagation delay.

use anabranch_core::{packet::PacketId, rng::Stream, trace::ElementId, units::Instant};

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
    /// Creates an impairment whose verdicts are drawn from `stream`.
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

/// Exit of a packet whose transmission has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Exit {
    /// The packet.
    pub packet: PacketId,
    /// Its number among the arrivals at this link.
    pub order: u32,
    /// When it arrives at the far end.
    pub at: Instant,
    /// Whether a second copy arrives with it.
    pub duplicate: bool,
}

/// Verdict of an impairment, for observers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Impairing {
    /// The element.
    pub element: ElementId,
    /// Time of the verdict.
    pub at: Instant,
    /// The verdict.
    pub verdict: Verdict,
}

/// Result of a completed transmission.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Completed {
    /// The packet goes on.
    Exit(Exit),
    /// An impairment lost or damaged the packet.
    Lost {
        /// The packet.
        packet: PacketId,
        /// Time of the loss during propagation.
        at: Instant,
    },
    /// The link retransmits the packet.
    Resending(PacketId),
    /// A pause ended; the packet is being retransmitted.
    Resumed(PacketId),
}

/// Result of propagation and impairments.
#[derive(Debug, Clone, Copy)]
pub(super) enum Travel {
    /// It arrives at this time, twice if `duplicate`.
    Through { at: Instant, duplicate: bool },
    /// It is lost or damaged at this time.
    Lost { at: Instant },
}

impl ServedLink {
    /// Applies the propagation delay and the impairments to a packet that leaves now. Each
    /// impairment numbers it separately.
    #[expect(
        clippy::inline_always,
        reason = "every packet that leaves a served link comes this way"
    )]
    #[inline(always)]
    pub(super) fn travel(
        &mut self,
        now: Instant,
        packet: View,
        impairing: &mut Vec<Impairing>,
    ) -> Travel {
        let mut at = now + self.propagation.at(now);
        let mut duplicate = false;
        let mut in_order = true;
        for impaired in &mut self.impairments {
            let view = View {
                index: impaired.seen,
                ..packet
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
            // The route stays FIFO: later packets wait for a late packet.
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
        let view = View {
            size: item.size,
            ecn: item.ecn,
            index: 0,
            has_data: item.has_data,
        };
        match self.travel(now, view, impairing) {
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

    /// Counts reordering (RFC 4737 §3.3) by arrival at this link. Packet number `order`, which got
    /// through at `at`, is reordered if a packet that arrived later got through earlier. On a link
    /// where packets may overtake each other, the owner calls this as they arrive at the far end.
    pub fn count_order(&mut self, order: u32, at: Instant) {
        if order.wrapping_sub(self.next_order).cast_signed() >= 0 {
            self.next_order = order.wrapping_add(1);
        } else if order != self.last_order && self.window.contains(at) {
            // Only the first arrival of a duplicated packet counts; its copy follows directly.
            self.statistics.reordered_packets += 1;
        }
        self.last_order = order;
    }
}
