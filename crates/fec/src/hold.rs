//! Acknowledgments that the receiver holds while redundancy may still recover missing data (Sato et
//! al. §3.3).
//!
//! Acknowledgments are released when no data is missing any more, when a loss proves unrecoverable,
//! or at a timeout. After a repair, each of them has the content that it would have had without the
//! loss, or a single one replaces them all. Otherwise they are sent unchanged, as the duplicates
//! and SACKs that the sender's loss recovery needs. While an unrecoverable loss is outstanding,
//! acknowledgments are not held, unless [`InRecovery`] permits it.
//!
//! Each acknowledgment keeps the ECN marks of the time at which it was ready, even if its number
//! changes. The number is that of the data that elicited it. An ECE is therefore at the position
//! that it would have without the loss, before the data with the CWR that answers it (RFC 3168
//! §6.1.3), and the ACE field grows with the numbers (RFC 9768 §3.2.2). If TCP's own acknowledgment
//! replaces others, TCP repeats their marks: it repeats an ECE until it is answered, and its counts
//! include all received packets.

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

/// [`Release::Paced`] shortens the intervals between acknowledgments by this ratio, so that the
/// delay ends.
const SPEED: (u64, u64) = (10, 9);

/// The reason for which a hold ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// The missing data was recovered.
    Repaired,
    /// The missing data was retransmitted or merely late, or data arrived twice.
    Retransmitted,
    /// More packets of the group are missing than its redundancy can recover.
    SecondGap,
    /// The group's redundancy did not recover the missing data.
    GroupOver,
    /// The hold timed out.
    Timeout,
}

/// See the module.
#[derive(Debug)]
pub struct Hold<B> {
    enabled: bool,
    timeout: Duration,
    in_recovery: InRecovery,
    release: Release,
    /// The end of the hold; [`Instant::NEVER`] while acknowledgments are not held.
    until: Instant,
    /// The end of data that is missing and unrecoverable.
    hopeless: Option<Seq>,
    /// The value of `hopeless` at the beginning of the hold.
    older: Option<Seq>,
    held: VecDeque<Held<B>>,
    /// Released acknowledgments, and their transmission times.
    released: VecDeque<(Segment<B>, Instant)>,
    /// When the last of them was ready.
    ready: Instant,
}

/// An acknowledgment that is ready.
#[derive(Debug)]
pub struct Held<B> {
    /// As TCP built it.
    pub ack: Segment<B>,
    /// One past the data that elicited it.
    pub end: Seq,
    /// When it was ready.
    pub ready: Instant,
    /// Window scale (RFC 7323 §2.2).
    pub scale: u8,
}

impl<B> Held<B> {
    /// Advances the acknowledgment to `to`. The window keeps its right edge or, because of the
    /// scale, ends slightly before it: no larger window was announced.
    fn acknowledge(&mut self, to: Seq) {
        let more = to.wire().wrapping_sub(self.ack.ack).cast_signed();
        let window = u64::from(self.ack.window) << self.scale;
        // For duplicate data, `to` is below the acknowledgment, and the window remains.
        let left = window.saturating_sub(u64::try_from(more).unwrap_or(0)) >> self.scale;
        self.ack.window = u16::try_from(left).unwrap_or(u16::MAX);
        self.ack.ack = to.wire();
    }

    /// Adds the received range `start..end`.
    fn report(&mut self, start: Seq, end: Seq) {
        if self.ack.ack != start.wire() {
            for block in self.blocks() {
                if block.left == end.wire() {
                    block.left = start.wire();
                }
            }
            return;
        }
        // A SACK block must not begin at the acknowledgment number.
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

    /// The SACK blocks.
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

/// The options without SACK blocks; the counts of marked octets remain.
fn without_sack(options: &Options) -> Options {
    options.accecn().map_or(Options::None, Options::AccEcn)
}

impl<B: Body> Hold<B> {
    /// Creates a hold without acknowledgments.
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

    /// The time at which the hold expires, or at which a released acknowledgment is to be sent.
    #[must_use]
    pub fn deadline(&self) -> Instant {
        let next = self.released.front().map(|(_, due)| *due);
        self.until.min(next.unwrap_or(Instant::NEVER))
    }
    /// Whether the hold has expired.
    #[must_use]
    pub fn is_overdue(&self, now: Instant) -> bool {
        self.until <= now
    }
    /// Whether acknowledgments are being held.
    #[must_use]
    pub fn is_on(&self) -> bool {
        self.until != Instant::NEVER
    }

    /// Begins a hold because recoverable data is missing.
    pub fn begin(&mut self, now: Instant, stats: &mut Stats) {
        let may = self.hopeless.is_none() || self.in_recovery != InRecovery::No;
        if self.enabled && !self.is_on() && may {
            self.until = now.saturating_add(self.timeout);
            self.older = self.hopeless;
            stats.holds += 1;
        }
    }

    /// Whether an acknowledgment elicited by data up to `end` is held.
    #[must_use]
    pub fn holds(&self, end: Seq) -> bool {
        // Released acknowledgments are sent first.
        self.waits(end) || !self.released.is_empty()
    }

    fn waits(&self, end: Seq) -> bool {
        let fills_older = self.older.is_some_and(|older| end <= older);
        self.is_on() && !(self.in_recovery == InRecovery::NewData && fills_older)
    }

    /// Handles the arrival of duplicate data: the sender lacks acknowledgments that it waits for.
    pub fn on_duplicate(&mut self, now: Instant, top: Seq, stats: &mut Stats) {
        if self.is_on() && self.in_recovery == InRecovery::All {
            self.give_up(now, Reason::Retransmitted, top, stats);
        }
    }

    /// Handles a retransmission of missing data: the sender no longer waits for the repair.
    pub fn on_resent(&mut self, now: Instant, top: Seq, stats: &mut Stats) {
        if self.is_on() && self.in_recovery == InRecovery::No {
            self.give_up(now, Reason::Retransmitted, top, stats);
        }
    }

    /// Handles a repair of `start..end` while earlier data is missing: held acknowledgments no
    /// longer report it as missing.
    pub fn on_repaired(&mut self, start: Seq, end: Seq) {
        if self.older.is_none() {
            return;
        }
        for held in &mut self.held {
            held.report(start, end);
        }
    }

    /// Holds or releases an acknowledgment that is ready.
    pub fn keep(&mut self, held: Held<B>, stats: &mut Stats) {
        if self.waits(held.end) {
            stats.held_acks += 1;
            self.held.push_back(held);
        } else {
            self.let_go(held.ready, held.ack, held.ready);
        }
    }

    /// Releases an acknowledgment: at once or, if paced, at its original distance from the previous
    /// one, shortened by [`SPEED`].
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

    /// Declares the data missing below `top` unrecoverable and releases the held acknowledgments.
    /// [`Release::Paced`] spaces them as well: with bursty losses, an earlier recovery by a burst
    /// of duplicates gains less than the subsequent drops in the sender's queue cost.
    pub fn give_up(&mut self, now: Instant, reason: Reason, top: Seq, stats: &mut Stats) {
        self.hopeless = Some(self.hopeless.map_or(top, |before| before.max(top)));
        self.end(reason, stats);
        while let Some(Held { ack, ready, .. }) = self.held.pop_front() {
            self.let_go(now, ack, ready);
        }
    }

    /// Ends the hold because no data below `rcv_nxt` is missing. Returns whether an omitted
    /// acknowledgment carried counts of marked octets, which TCP must repeat.
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
                // TCP's own acknowledgment replaces the last of them.
                counted |= held.ack.options.accecn().is_some();
                continue;
            }
            // Without this loss it would still report the earlier missing data.
            if older.is_none_or(|older| rcv_nxt.near(held.ack.ack) >= older) {
                held.acknowledge(held.end);
                held.ack.options = without_sack(&held.ack.options);
            }
            self.let_go(now, held.ack, held.ready);
        }
        counted
    }

    /// Discards all acknowledgments: the connection is closed.
    pub fn clear(&mut self) {
        self.until = Instant::NEVER;
        self.held.clear();
        self.released.clear();
    }

    /// Records that TCP expects `rcv_nxt`.
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

    /// The next released acknowledgment that is to be sent by now.
    pub fn take_released(&mut self, now: Instant) -> Option<Segment<B>> {
        let (_, due) = self.released.front()?;
        if *due > now {
            return None;
        }
        self.released.pop_front().map(|(ack, _)| ack)
    }
}
