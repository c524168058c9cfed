//! Acknowledgments held back while redundancy may still bring back what is missing (Sato et al. §3.3).
//!
//! They are let go when nothing is missing any more, when it is clear that something will not come back, and
//! when it takes too long. After a repair each says what it would have said had nothing been lost, or one
//! speaks for all; otherwise they leave as they are, as the duplicates and reports that the sender's recovery
//! lives on. As long as something is missing that will not come back, acknowledgments are not held, unless
//! [`InRecovery`] says so.

use std::collections::VecDeque;

use anabranch_core::units::{Duration, Instant};

use super::{
    params::{InRecovery, Params, Release},
    stats::Stats,
};
use crate::{
    body::Body,
    tcp::{Options, SackBlock, Segment, Seq},
};

/// What was ready in the first of these times leaves in the second with [`Release::Paced`], so that the delay ends.
const SPEED: (u64, u64) = (10, 9);

/// Why a hold ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// What was missing was brought back.
    Repaired,
    /// What was missing was sent again, or was only late; or something arrived a second time.
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
    in_recovery: InRecovery,
    release: Release,
    /// Until when acknowledgments are held; [`Instant::NEVER`] while they are not.
    until: Instant,
    /// Something before this number will not come back.
    hopeless: Option<Seq>,
    /// The same when the hold began.
    older: Option<Seq>,
    held: VecDeque<Held<B>>,
    /// What was let go, and when it is to leave.
    released: VecDeque<(Segment<B>, Instant)>,
    /// When the last of those was ready.
    ready: Instant,
}

/// An acknowledgment that waits.
#[derive(Debug)]
struct Held<B> {
    ack: Segment<B>,
    /// Behind the data that called for it.
    end: Seq,
    /// When it was ready.
    ready: Instant,
}

impl<B: Body> Hold<B> {
    /// With nothing held.
    #[must_use]
    pub fn new(params: &Params) -> Self {
        Self {
            enabled: params.hold_acks,
            timeout: params.hold_timeout.get(),
            in_recovery: params.hold_in_recovery,
            release: params.release,
            until: Instant::NEVER,
            hopeless: None,
            older: None,
            held: VecDeque::new(),
            released: VecDeque::new(),
            ready: Instant::START,
        }
    }

    /// When [`Reason::Timeout`] is due, or something that was let go is to leave.
    #[must_use]
    pub fn deadline(&self) -> Instant {
        let next = self.released.front().map(|(_, due)| *due);
        self.until.min(next.unwrap_or(Instant::NEVER))
    }
    /// Whether it has taken too long.
    #[must_use]
    pub fn is_overdue(&self, now: Instant) -> bool {
        self.until <= now
    }
    /// Whether acknowledgments are being held.
    #[must_use]
    pub fn is_on(&self) -> bool {
        self.until != Instant::NEVER
    }

    /// Something is missing that may come back.
    pub fn begin(&mut self, now: Instant, stats: &mut Stats) {
        let may = self.hopeless.is_none() || self.in_recovery != InRecovery::No;
        if self.enabled && !self.is_on() && may {
            self.until = now.saturating_add(self.timeout);
            self.older = self.hopeless;
            stats.holds += 1;
        }
    }

    /// Whether an acknowledgment is held that the arrival of data up to `end` calls for.
    #[must_use]
    pub fn holds(&self, end: Seq) -> bool {
        // What was let go leaves first.
        self.waits(end) || !self.released.is_empty()
    }

    fn waits(&self, end: Seq) -> bool {
        let fills_older = self.older.is_some_and(|older| end <= older);
        self.is_on() && !(self.in_recovery == InRecovery::NewData && fills_older)
    }

    /// Data has arrived that was there already: the sender goes without acknowledgments that it waits for.
    pub fn on_duplicate(&mut self, now: Instant, top: Seq, stats: &mut Stats) {
        if self.is_on() && self.in_recovery == InRecovery::All {
            self.give_up(now, Reason::Retransmitted, top, stats);
        }
    }

    /// Something that was missing was sent again: the sender has given up waiting for its repair.
    pub fn on_resent(&mut self, now: Instant, top: Seq, stats: &mut Stats) {
        if self.is_on() && self.in_recovery == InRecovery::No {
            self.give_up(now, Reason::Retransmitted, top, stats);
        }
    }

    /// This was brought back, and something older is missing: what is held does not report it as missing.
    pub fn on_repaired(&mut self, start: Seq, end: Seq) {
        if self.older.is_none() {
            return;
        }
        for Held { ack, .. } in &mut self.held {
            if let Options::Sack(n, blocks) = &mut ack.options {
                for SackBlock { left, .. } in &mut blocks[..usize::from(*n)] {
                    if *left == end.wire() {
                        *left = start.wire();
                    }
                }
            }
        }
    }

    /// An acknowledgment is ready that the arrival of data up to `end` called for.
    pub fn keep(&mut self, now: Instant, ack: Segment<B>, end: Seq, stats: &mut Stats) {
        let ready = now;
        if self.waits(end) {
            stats.held_acks += 1;
            self.held.push_back(Held { ack, end, ready });
        } else {
            self.let_go(now, ack, ready);
        }
    }

    /// It leaves now, or as long after what was let go before it as it was ready after that.
    fn let_go(&mut self, now: Instant, ack: Segment<B>, ready: Instant) {
        let due = match self.released.back() {
            Some((_, before)) if self.release == Release::Paced => {
                let apart = ready.saturating_since(self.ready) / SPEED.0 * SPEED.1;
                now.max(before.saturating_add(apart))
            }
            _ => now,
        };
        self.ready = ready;
        self.released.push_back((ack, due));
    }

    /// What TCP misses before `top` will not come back by redundancy. All leaves at once: the sender's recovery begins
    /// with the last of them.
    pub fn give_up(&mut self, now: Instant, reason: Reason, top: Seq, stats: &mut Stats) {
        self.hopeless = Some(self.hopeless.map_or(top, |before| before.max(top)));
        self.end(reason, stats);
        for (_, due) in &mut self.released {
            *due = now;
        }
        let held = self.held.drain(..).map(|held| (held.ack, now));
        self.released.extend(held);
        self.ready = now;
    }

    /// Nothing is missing any more before `rcv_nxt`.
    pub fn complete(&mut self, now: Instant, reason: Reason, rcv_nxt: Seq, stats: &mut Stats) {
        self.note_progress(rcv_nxt);
        if !self.is_on() {
            return;
        }
        self.end(reason, stats);
        let held = std::mem::take(&mut self.held);
        if self.release == Release::One {
            return;
        }
        let older = self.older;
        for Held {
            mut ack,
            end,
            ready,
        } in held
        {
            if end >= rcv_nxt {
                // TCP itself says what the last of them would say.
                continue;
            }
            // Without this loss it would still have reported what was missing before.
            if older.is_none_or(|older| rcv_nxt.near(ack.ack) >= older) {
                ack.ack = end.wire();
                ack.options = Options::None;
            }
            self.let_go(now, ack, ready);
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

    /// The next acknowledgment that was let go and is to leave by now.
    pub fn take_released(&mut self, now: Instant) -> Option<Segment<B>> {
        let (_, due) = self.released.front()?;
        if *due > now {
            return None;
        }
        self.released.pop_front().map(|(ack, _)| ack)
    }
}
