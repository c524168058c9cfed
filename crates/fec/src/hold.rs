//! Acknowledgments held back while redundancy may still bring back what is missing (Sato et al. §3.3).
//!
//! They are let go when nothing is missing any more, when it is clear that something will not come back, and
//! when it takes too long. After a repair each says what it would have said had nothing been lost, or one
//! speaks for all; otherwise they leave as they are, as the duplicates and reports that the sender's recovery
//! lives on. As long as something is missing that will not come back, acknowledgments are not held, unless
//! [`InRecovery`] says so.
//!
//! Marks are told as they were when each was ready, whatever number it leaves with: the number is that of the data that called
//! for it, so an ECE stands where it would have stood without the loss, before the data with the CWR that answers it
//! (RFC 3168 §6.1.3), and the ACE field grows with the numbers (RFC 9768 §3.2.2). What is left out, because TCP itself speaks
//! for it, TCP repeats: its echo stays until it is answered, and its counts are of all that came.

use std::collections::VecDeque;

use anabranch_core::{
    body::Body,
    units::{Duration, Instant},
};

use super::{
    params::{InRecovery, Params, Release},
    stats::Stats,
};
use anabranch_wire::{Options, SackBlock, Segment, Seq};

/// What was ready in the first of these times leaves in the second with [`Release::Paced`], so that the delay ends.
const SPEED: (u64, u64) = (10, 9);

/// Why a hold ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// What was missing was brought back.
    Repaired,
    /// What was missing was retransmitted, or was only late; or something arrived a second time.
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

/// An acknowledgment that is ready.
#[derive(Debug)]
pub struct Held<B> {
    /// As TCP made it.
    pub ack: Segment<B>,
    /// Behind the data that called for it.
    pub end: Seq,
    /// When it was ready.
    pub ready: Instant,
    /// Shift of its window (RFC 7323 §2.2).
    pub scale: u8,
}

impl<B> Held<B> {
    /// It acknowledges up to `to`. The window ends where it ended or, by the scale, a little before: more was not offered.
    fn acknowledge(&mut self, to: Seq) {
        let more = to.wire().wrapping_sub(self.ack.ack).cast_signed();
        let window = u64::from(self.ack.window) << self.scale;
        // What came a second time is acknowledged for itself, behind what was acknowledged then.
        let left = window.saturating_sub(u64::try_from(more).unwrap_or(0)) >> self.scale;
        self.ack.window = u16::try_from(left).unwrap_or(u16::MAX);
        self.ack.ack = to.wire();
    }

    /// It says that `start..end` is there.
    fn report(&mut self, start: Seq, end: Seq) {
        if self.ack.ack != start.wire() {
            for block in self.blocks() {
                if block.left == end.wire() {
                    block.left = start.wire();
                }
            }
            return;
        }
        // No report begins where the acknowledgment ends.
        let mut to = end;
        while let Some(place) = self.blocks().iter().position(|b| b.left == to.wire()) {
            to = to.near(self.blocks()[place].right);
            self.blocks()[place..].rotate_left(1);
            match &mut self.ack.options {
                Options::Sack(n, _) | Options::SackAccEcn(n, ..) => *n -= 1,
                Options::None | Options::Syn { .. } | Options::AccEcn(_) => {}
            }
        }
        if self.ack.options.sack_blocks().is_empty() {
            self.ack.options = without_sack(&self.ack.options);
        }
        self.acknowledge(to);
    }

    /// Reports of what came behind something that is missing.
    fn blocks(&mut self) -> &mut [SackBlock] {
        let (n, blocks): (u8, &mut [SackBlock]) = match &mut self.ack.options {
            Options::Sack(n, blocks) => (*n, blocks),
            Options::SackAccEcn(n, blocks, _) => (*n, blocks),
            Options::None | Options::Syn { .. } | Options::AccEcn(_) => (0, &mut []),
        };
        let n = usize::from(n).min(blocks.len());
        &mut blocks[..n]
    }
}

/// Counts of marked octets stay.
fn without_sack(options: &Options) -> Options {
    options.accecn().map_or(Options::None, Options::AccEcn)
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

    /// Something that was missing was retransmitted: the sender has given up waiting for its repair.
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
        for held in &mut self.held {
            held.report(start, end);
        }
    }

    /// An acknowledgment is ready.
    pub fn keep(&mut self, held: Held<B>, stats: &mut Stats) {
        if self.waits(held.end) {
            stats.held_acks += 1;
            self.held.push_back(held);
        } else {
            self.let_go(held.ready, held.ack, held.ready);
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

    /// What TCP misses before `top` will not come back by redundancy. With [`Release::Paced`] these leave apart as well:
    /// where losses come in bursts a recovery that begins sooner, by duplicates that all come at once, gains less than what
    /// the sender's queue then drops costs.
    pub fn give_up(&mut self, now: Instant, reason: Reason, top: Seq, stats: &mut Stats) {
        self.hopeless = Some(self.hopeless.map_or(top, |before| before.max(top)));
        self.end(reason, stats);
        while let Some(Held { ack, ready, .. }) = self.held.pop_front() {
            self.let_go(now, ack, ready);
        }
    }

    /// Nothing is missing any more before `rcv_nxt`. Whether something is left out that counted marked octets, which TCP is to
    /// repeat.
    #[must_use]
    pub fn complete(
        &mut self,
        now: Instant,
        reason: Reason,
        rcv_nxt: Seq,
        stats: &mut Stats,
    ) -> bool {
        self.note_progress(rcv_nxt);
        if !self.is_on() {
            return false;
        }
        self.end(reason, stats);
        let held = std::mem::take(&mut self.held);
        let mut counted = false;
        let older = self.older;
        for mut held in held {
            if self.release == Release::One || held.end >= rcv_nxt {
                // TCP itself says what the last of them would say.
                counted |= held.ack.options.accecn().is_some();
                continue;
            }
            // Without this loss it would still have reported what was missing before.
            if older.is_none_or(|older| rcv_nxt.near(held.ack.ack) >= older) {
                held.acknowledge(held.end);
                held.ack.options = without_sack(&held.ack.options);
            }
            self.let_go(now, held.ack, held.ready);
        }
        counted
    }

    /// The connection is over: nobody wants to hear of it.
    pub fn clear(&mut self) {
        self.until = Instant::NEVER;
        self.held.clear();
        self.released.clear();
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
