//! What this end sent on a path and has not been told the fate of.

use anabranch_core::units::{Duration, Instant};
use std::collections::VecDeque;

use crate::{
    pool::Pool,
    wire::{Kind, Place, Report},
};

/// Entries at most: 1 Gbit/s for 100 ms.
const ENTRIES: usize = 8_192;
/// Packets are kept for retransmission for this time and up to these octets.
const KEEP: Duration = Duration::from_secs(1);
const KEEP_OCTETS: usize = 4 << 20;
/// A packet is presumed lost once the number so much higher arrived (RFC 9002 §6.1.1), if it was also sent long enough before it.
const PACKET_THRESHOLD: u64 = 3;
/// One that was presumed lost may still arrive for this time.
const REMEMBER: Duration = Duration::from_secs(1);
/// How long before a packet that arrived another must have been sent to be lost, at most.
const REORDERING_MOST: Duration = Duration::from_millis(300);
/// How much longer than the widest reordering that is (a quarter), and how fast that is forgotten (a part per report).
const MARGIN: u64 = 4;
const FORGET: u64 = 256;

/// A packet that may be retransmitted.
#[derive(Debug, Clone)]
pub struct Kept {
    /// Its place in its flow.
    pub place: Place,
    /// The packet.
    pub packet: Vec<u8>,
    /// How often it was retransmitted.
    pub attempts: u8,
    /// The lane that it waits in.
    pub lane: u8,
    /// Its block and its index there, if repair packets protect it.
    pub part: Option<(u16, u8)>,
}

impl Kept {
    /// What carries it.
    #[must_use]
    pub const fn kind(&self) -> Kind {
        let place = self.place;
        match self.part {
            None => Kind::Packet(place),
            Some((block, index)) => Kind::Protected {
                place,
                block,
                index,
            },
        }
    }
}

/// Something sent.
#[derive(Debug, Clone)]
pub struct Sent {
    /// Its number.
    pub number: u64,
    /// When.
    pub at: Instant,
    /// Octets of the datagram.
    pub octets: usize,
    /// Octets in flight on the path then.
    pub in_flight: usize,
    /// Its arrival is reported soon: not that of control messages, and perhaps not that of probes of the path MTU.
    pub expects_report: bool,
    /// The packet, where it can be retransmitted.
    pub kept: Option<Kept>,
    /// The lane and the block of a repair packet.
    pub repairs: Option<(u8, u16)>,
}

/// What a report decided.
#[derive(Debug, Default)]
pub struct Outcome {
    /// Sent packets that arrived, oldest first.
    pub arrived: Vec<Sent>,
    /// Octets of those that arrived after all, having been presumed lost.
    pub spurious: usize,
    /// Those that are presumed lost, oldest first.
    pub lost: Vec<Sent>,
    /// When the highest number was sent, if it is higher than any before, and what was in flight then.
    pub advanced: Option<(Instant, usize)>,
}

impl Outcome {
    fn clear(&mut self) {
        self.arrived.clear();
        self.lost.clear();
        (self.spurious, self.advanced) = (0, None);
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    Outstanding,
    Arrived,
    Lost,
}

/// The packets outstanding on a path, by number.
///
/// A packet is presumed lost by the order of arrivals, as RACK does (RFC 8985 §6.2): the path's own reordering is measured, and
/// what was sent that much before a packet that arrived is lost.
#[derive(Debug, Default)]
pub struct Ledger {
    /// Numbers without a gap.
    sent: VecDeque<(Sent, Fate)>,
    kept_octets: usize,
    outstanding: usize,
    /// So many of the oldest keep no packet.
    bare: usize,
    /// All numbers below are decided.
    undecided: u64,
    /// The highest number that is reported, and when it was sent.
    reported: Option<(u64, Instant)>,
    reordering: Duration,
}

impl Ledger {
    /// Adds what was sent. Gives octets that are no longer counted, for lack of room.
    pub fn add(&mut self, sent: Sent, pool: &mut Pool) -> usize {
        let mut dropped = 0;
        // A number that was never sent has no fate to wait for.
        if self.end().is_some_and(|end| end != sent.number) {
            while let Some((oldest, fate)) = self.pop() {
                dropped += uncounted(&oldest, fate);
                if let Some(kept) = oldest.kept {
                    pool.put(kept.packet);
                }
            }
        }
        self.kept_octets += kept_octets(&sent);
        self.outstanding += 1;
        if self.sent.is_empty() {
            self.undecided = sent.number;
        }
        self.sent.push_back((sent, Fate::Outstanding));
        while self.sent.len() > ENTRIES {
            if let Some((oldest, fate)) = self.pop() {
                dropped += uncounted(&oldest, fate);
                if let Some(kept) = oldest.kept {
                    pool.put(kept.packet);
                }
            }
        }
        self.limit(pool);
        dropped
    }

    fn first(&self) -> Option<u64> {
        self.sent.front().map(|(sent, _)| sent.number)
    }

    fn end(&self) -> Option<u64> {
        self.sent.back().map(|(sent, _)| sent.number + 1)
    }

    fn index(&self, number: u64) -> Option<usize> {
        let index = usize::try_from(number.checked_sub(self.first()?)?).ok()?;
        (index < self.sent.len()).then_some(index)
    }

    fn pop(&mut self) -> Option<(Sent, Fate)> {
        let (oldest, fate) = self.sent.pop_front()?;
        self.kept_octets -= kept_octets(&oldest);
        self.outstanding -= usize::from(fate == Fate::Outstanding);
        self.bare = self.bare.saturating_sub(1);
        self.undecided = self.undecided.max(oldest.number + 1);
        Some((oldest, fate))
    }

    /// Drops the oldest packets that are kept while there are too many octets of them.
    fn limit(&mut self, pool: &mut Pool) {
        while self.kept_octets > KEEP_OCTETS
            && let Some((sent, _)) = self.sent.get_mut(self.bare)
        {
            self.kept_octets -= kept_octets(sent);
            self.bare += 1;
            if let Some(kept) = sent.kept.take() {
                pool.put(kept.packet);
            }
        }
    }

    /// Octets that are kept.
    #[must_use]
    pub const fn kept_octets(&self) -> usize {
        self.kept_octets
    }

    /// Packets outstanding.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.outstanding
    }

    /// Whether nothing is outstanding.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.outstanding == 0
    }

    /// Takes a report in, and says in `outcome` what it decides. A packet sent `window` later that arrived shows a loss by itself.
    pub fn on_report(&mut self, report: &Report, window: Duration, outcome: &mut Outcome) {
        outcome.clear();
        self.reordering = self.reordering.saturating_sub(self.reordering / FORGET);
        let before = self.reported;
        if let Some(index) = self.index(report.highest)
            && before.is_none_or(|(before, _)| report.highest > before)
        {
            let Sent { at, in_flight, .. } = self.sent[index].0;
            outcome.advanced = Some((at, in_flight));
            self.reported = Some((report.highest, at));
        }
        for number in report.arrivals.numbers(report.highest) {
            self.on_arrived(number, before, outcome);
        }
        if let Some((highest, at)) = self.reported {
            self.presume(highest, at, window, outcome);
            self.settle(at);
        }
    }

    fn on_arrived(&mut self, number: u64, before: Option<(u64, Instant)>, outcome: &mut Outcome) {
        let Some((sent, fate)) = self
            .index(number)
            .and_then(|index| self.sent.get_mut(index))
        else {
            return;
        };
        let was = std::mem::replace(fate, Fate::Arrived);
        if was == Fate::Arrived {
            return;
        }
        if let Some((_, at)) = before.filter(|&(highest, _)| number < highest) {
            let overtaken = at.saturating_since(sent.at);
            let wide = (overtaken + overtaken / MARGIN).min(REORDERING_MOST);
            self.reordering = self.reordering.max(wide);
        }
        if was == Fate::Lost {
            outcome.spurious += sent.octets;
            return;
        }
        self.outstanding -= 1;
        self.kept_octets -= kept_octets(sent);
        outcome.arrived.push(Sent {
            kept: sent.kept.take(),
            ..*sent
        });
    }

    fn presume(&mut self, highest: u64, at: Instant, window: Duration, outcome: &mut Outcome) {
        while self.undecided < highest
            && let Some(index) = self.index(self.undecided)
            && let Some((sent, fate)) = self.sent.get_mut(index)
        {
            if *fate == Fate::Outstanding {
                let overtaken = at.saturating_since(sent.at);
                let is_far = self.undecided + PACKET_THRESHOLD <= highest || overtaken >= window;
                if overtaken < self.reordering || !is_far {
                    return;
                }
                *fate = Fate::Lost;
                self.outstanding -= 1;
                self.kept_octets -= kept_octets(sent);
                outcome.lost.push(Sent {
                    kept: sent.kept.take(),
                    ..*sent
                });
            }
            self.undecided += 1;
        }
    }

    /// Forgets the oldest whose fate will not change.
    fn settle(&mut self, at: Instant) {
        while let Some((sent, fate)) = self.sent.front()
            && match fate {
                Fate::Arrived => true,
                Fate::Lost => at.saturating_since(sent.at) > REMEMBER,
                Fate::Outstanding => false,
            }
        {
            self.pop();
        }
    }

    /// When the oldest packet was sent that has a higher number than all that are reported.
    #[must_use]
    pub fn waiting(&self) -> Option<Instant> {
        let newer = match self.reported {
            Some((highest, _)) => self.index(highest).map_or(0, |index| index + 1),
            None => 0,
        };
        let mut newer = self.sent.iter().skip(newer).map(|(sent, _)| sent);
        newer.find(|sent| sent.expects_report).map(|sent| sent.at)
    }

    /// Takes out the packets that are kept, for another path: those sent within a second.
    pub fn take_kept(&mut self, now: Instant) -> Vec<Kept> {
        self.kept_octets = 0;
        let recent = |sent: &Sent| now.saturating_since(sent.at) < KEEP;
        self.sent
            .iter_mut()
            .filter_map(|(sent, _)| sent.kept.take().filter(|_| recent(sent)))
            .collect()
    }

    /// Forgets all that is outstanding.
    pub fn forget(&mut self) {
        *self = Self::default();
    }
}

fn uncounted(sent: &Sent, fate: Fate) -> usize {
    if fate == Fate::Outstanding {
        sent.octets
    } else {
        0
    }
}

fn kept_octets(sent: &Sent) -> usize {
    sent.kept.as_ref().map_or(0, |kept| kept.packet.len())
}
