//! Acknowledgments held back while redundancy may still bring back what is missing (Sato et al. §3.3).
//!
//! They are let go when nothing is missing any more, when it is clear that something will not come back, and
//! when it takes too long. After a repair each says what it would have said had nothing been lost, or one
//! speaks for all; otherwise they leave as they are, as the duplicates and reports that the sender's recovery
//! lives on. As long as something is missing that will not come back, acknowledgments are not held.

use std::collections::VecDeque;

use anabranch_core::units::{Duration, Instant};

use super::{
    params::{Params, Release},
    stats::Stats,
};
use crate::{
    body::Body,
    tcp::{Options, Segment, Seq},
};

/// Why a hold ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// What was missing was brought back.
    Repaired,
    /// What was missing was sent again, or was only late.
    Retransmitted,
    /// More is missing from the group than its redundancy can bring back.
    SecondGap,
    /// The group's redundancy did not bring it back.
    GroupOver,
    /// It took too long.
    Timeout,
}

/// See the module.
#[derive(Debug)]
pub struct Hold<B> {
    enabled: bool,
    timeout: Duration,
    release: Release,
    /// Until when acknowledgments are held; [`Instant::NEVER`] while they are not.
    until: Instant,
    /// Something before this number will not come back.
    hopeless: Option<Seq>,
    held: VecDeque<(Segment<B>, Seq)>,
    released: VecDeque<Segment<B>>,
}

impl<B: Body> Hold<B> {
    /// With nothing held.
    #[must_use]
    pub fn new(params: &Params) -> Self {
        Self {
            enabled: params.hold_acks,
            timeout: params.hold_timeout.get(),
            release: params.release,
            until: Instant::NEVER,
            hopeless: None,
            held: VecDeque::new(),
            released: VecDeque::new(),
        }
    }

    /// When [`Reason::Timeout`] is due.
    #[must_use]
    pub const fn deadline(&self) -> Instant {
        self.until
    }
    /// Whether acknowledgments are being held.
    #[must_use]
    pub fn is_on(&self) -> bool {
        self.until != Instant::NEVER
    }

    /// Something is missing that may come back.
    pub fn begin(&mut self, now: Instant, stats: &mut Stats) {
        if self.enabled && !self.is_on() && self.hopeless.is_none() {
            self.until = now.saturating_add(self.timeout);
            stats.holds += 1;
        }
    }

    /// An acknowledgment is ready that the arrival of data up to `end` called for.
    pub fn keep(&mut self, ack: Segment<B>, end: Seq, stats: &mut Stats) {
        stats.held_acks += 1;
        self.held.push_back((ack, end));
    }

    /// TCP expects `rcv_nxt`, and what it misses before `top` will not come back by redundancy.
    pub fn give_up(&mut self, reason: Reason, top: Seq, stats: &mut Stats) {
        self.hopeless = Some(self.hopeless.map_or(top, |before| before.max(top)));
        self.end(reason, stats);
        let held = self.held.drain(..).map(|(ack, _)| ack);
        self.released.extend(held);
    }

    /// Nothing is missing any more before `rcv_nxt`.
    pub fn complete(&mut self, reason: Reason, rcv_nxt: Seq, stats: &mut Stats) {
        self.note_progress(rcv_nxt);
        if !self.is_on() {
            return;
        }
        self.end(reason, stats);
        let mut held = std::mem::take(&mut self.held);
        if self.release == Release::Each {
            // TCP itself says what the last of them would say.
            held.retain(|(_, end)| *end < rcv_nxt);
            self.released.extend(held.into_iter().map(|(mut ack, end)| {
                ack.ack = end.wire();
                ack.options = Options::None;
                ack
            }));
        }
    }

    /// TCP expects `rcv_nxt` now.
    pub fn note_progress(&mut self, rcv_nxt: Seq) {
        self.hopeless = self.hopeless.filter(|hopeless| rcv_nxt < *hopeless);
    }

    fn end(&mut self, reason: Reason, stats: &mut Stats) {
        if !self.is_on() {
            return;
        }
        self.until = Instant::NEVER;
        *match reason {
            Reason::Repaired => &mut stats.released_repaired,
            Reason::Retransmitted => &mut stats.released_retransmitted,
            Reason::SecondGap => &mut stats.released_second_gap,
            Reason::GroupOver => &mut stats.released_group_over,
            Reason::Timeout => &mut stats.released_timeout,
        } += 1;
    }

    /// The next acknowledgment that was let go.
    pub fn take_released(&mut self) -> Option<Segment<B>> {
        self.released.pop_front()
    }
}
