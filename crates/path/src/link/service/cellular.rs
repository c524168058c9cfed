//! A cell's link to one phone (LTE, 5G): scheduling requests, grants, transport blocks, HARQ.
//!
//! Time is divided into transmission time intervals. Bits ready at the start of an interval go into
//! its transport block. A failed block is retransmitted one HARQ round trip later by the same HARQ
//! process, which carries no new data meanwhile; the other processes continue. RLC delivers in
//! order: a successful block waits for earlier blocks, so an error also delays the following
//! packets.
//!
//! On the downlink the scheduler sees the backlog, and a packet can be sent after `processing`. On
//! the uplink (`sr_period` above 0) a phone that has nothing to send first sends a scheduling
//! request; a phone that is sending adds a buffer status report to its next block. A grant answers
//! either, and the granted block leaves `grant_delay` after the request.
//!
//! The rate is the link's `rate`, or that of a trace (`file`). Retransmissions consume part of it.
//!
//! # Differs from the source
//! - Defaults are components of LTE's delay. The totals of the report's table (17, 12.5 and 7.5 ms)
//!   are not confirmed (docs/design/039-media.md).
//! - Retransmissions fail as often as first transmissions: soft combining gains nothing. A block is
//!   retransmitted until it succeeds, so RLC never retransmits.
//! - A grant covers all reported data, at the full rate.
//! - A block interrupted by a link that goes down is sent again from the start.
//!
//! # Not implemented
//! - TDD frames, discontinuous reception, random access, other phones of the cell, link adaptation,
//!   handover.

use std::collections::VecDeque;

use anabranch_core::{
    bounded, quantity,
    registry::{Meta, Source},
    rng::Stream,
    units::{Duration, Instant},
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{super::steps::Repeat, AnyService, Service, clock::Recurring};

/// Description for registry, docs and command line.
pub const META: Meta = Meta {
    name: "cellular",
    title: "Cell (LTE, 5G)",
    summary: "A cell's link to one phone: scheduling requests, grants, transport blocks, HARQ, delivery in order.",
    sources: &[
        Source {
            id: "3GPP TR 36.881 (study on latency reduction for LTE)",
            items: &["§5.2"],
        },
        Source {
            id: "3GPP TS 36.321 (MAC)",
            items: &["§5.4"],
        },
    ],
};

quantity! {
    /// A time of requests and grants.
    GrantTime, Duration, Duration::ZERO, Duration::from_secs(1)
}

quantity! {
    /// Length of a transmission time interval.
    Tti, Duration, Duration::from_nanos(62_500), Duration::from_millis(10)
}

bounded! {
    /// Share of blocks that fail.
    ErrorRate, 0.0..=0.9, "a share of blocks"
}

impl GrantTime {
    /// # Panics
    /// If `us` is above a second; in a `const` this is a compile error.
    #[must_use]
    pub const fn from_micros(us: u64) -> Self {
        assert!(us <= 1_000_000, "0..1 s");
        Self(Duration::from_micros(us))
    }
}

impl Tti {
    /// # Panics
    /// If `us` is outside 63 to 10,000; in a `const` this is a compile error.
    #[must_use]
    pub const fn from_micros(us: u64) -> Self {
        assert!(us >= 63 && us <= 10_000, "63 us..10 ms");
        Self(Duration::from_micros(us))
    }
}

/// Parameters of a cell's link. Defaults describe LTE's downlink; an uplink needs an `sr_period`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Params {
    /// Trace that replaces `rate`, as in the service `trace`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// Whether the trace repeats, or how often it is played in all.
    #[serde(skip_serializing_if = "Repeat::is_always")]
    pub repeat: Repeat,
    /// Length of a transmission time interval: 1 ms in LTE, 0.5 ms in 5G with 30 kHz subcarrier
    /// spacing.
    pub tti: Tti,
    /// Period of the phone's scheduling request opportunities; 0 if the scheduler sees the backlog,
    /// as on the downlink.
    pub sr_period: GrantTime,
    /// Time from the sending of a request or report to the granted block: its transmission (1 ms),
    /// the scheduler (3 ms), the grant (1 ms), the phone (3 ms). Uplink only.
    pub grant_delay: GrantTime,
    /// Processing time before a packet can go into a block. Downlink only; on the uplink
    /// `grant_delay` includes it.
    pub processing: GrantTime,
    /// Decoding time of a block.
    pub decoding: GrantTime,
    /// Time from a failed transmission to the next one.
    pub harq_round_trip: GrantTime,
    /// Share of transmissions that fail.
    pub error_rate: ErrorRate,
}

impl Default for Params {
    fn default() -> Self {
        Self {
            file: None,
            repeat: Repeat::Always,
            tti: Tti::from_micros(1_000),
            sr_period: GrantTime::from_micros(0),
            grant_delay: GrantTime::from_micros(8_000),
            processing: GrantTime::from_micros(3_000),
            decoding: GrantTime::from_micros(3_000),
            harq_round_trip: GrantTime::from_micros(8_000),
            error_rate: ErrorRate::new(0.1),
        }
    }
}

/// How a packet is scheduled.
#[derive(Debug)]
enum Access {
    /// The scheduler sees it.
    Seen { processing: Duration },
    /// The phone requests it.
    Requested {
        requests: Recurring,
        grant_delay: Duration,
        /// Time of the last request or report, which covers all earlier arrivals.
        last: Option<Instant>,
        /// Blocks that carry a report, from the arrival of the last scheduled packet on.
        blocks: VecDeque<u64>,
    },
}

/// The block that was filled last.
#[derive(Debug, Clone, Copy)]
struct Block {
    number: u64,
    /// Its size in bits, and the bits used.
    size: f64,
    taken: f64,
    /// When its reception succeeds.
    through: Instant,
}

/// Maximum number of blocks of a packet. The rest of the packet then goes at the link's rate. This
/// bounds the computing time for a packet on a very slow link.
const MOST_BLOCKS: u32 = 65_536;

fn start_of(block: u64, tti: Duration) -> Instant {
    Instant::from_picos(block.saturating_mul(tti.as_picos()))
}

/// State of a cell's link.
#[derive(Debug)]
pub struct Cellular {
    capacity: AnyService,
    tti: Duration,
    access: Access,
    decoding: Duration,
    error_rate: f64,
    /// For each HARQ process, the first block for which it is free.
    free: Vec<u64>,
    stream: Stream,
    arrived: Instant,
    block: Option<Block>,
    /// End of the last transmission, and delivery time of its packet.
    end: Instant,
    delivered: Instant,
}

impl Cellular {
    /// Creates a link over which a cell can send at `capacity`.
    #[must_use]
    pub fn new(params: &Params, capacity: AnyService, stream: Stream) -> Self {
        let tti = params.tti.get();
        let period = params.sr_period.get();
        let access = if period.is_zero() {
            Access::Seen {
                processing: params.processing.get(),
            }
        } else {
            let offset = period.mul_f64(stream.at(0).uniform());
            let offset = tti.saturating_mul(offset.as_picos() / tti.as_picos());
            Access::Requested {
                requests: Recurring::new(period, offset),
                grant_delay: params.grant_delay.get(),
                last: None,
                blocks: VecDeque::new(),
            }
        };
        let round_trip = params.harq_round_trip.get().as_picos();
        let processes = round_trip.div_ceil(tti.as_picos()).max(1);
        Self {
            capacity,
            tti,
            access,
            decoding: params.decoding.get(),
            error_rate: params.error_rate.get(),
            free: vec![0; usize::try_from(processes).unwrap_or(1)],
            stream,
            arrived: Instant::START,
            block: None,
            end: Instant::START,
            delivered: Instant::START,
        }
    }

    fn start_of(&self, block: u64) -> Instant {
        start_of(block, self.tti)
    }

    /// First block that begins at or after `at`.
    fn block_from(&self, at: Instant) -> u64 {
        at.as_picos().div_ceil(self.tti.as_picos())
    }

    /// When a packet that joined the queue at `arrived` can go into a block.
    fn ready(&mut self, arrived: Instant) -> Instant {
        let next = self.block_from(arrived);
        let tti = self.tti;
        match &mut self.access {
            Access::Seen { processing } => arrived.saturating_add(*processing),
            Access::Requested {
                requests,
                grant_delay,
                last,
                blocks,
            } => {
                let asked = match *last {
                    Some(last) if arrived <= last => last,
                    _ => {
                        while blocks.front().is_some_and(|block| *block < next) {
                            blocks.pop_front();
                        }
                        match blocks.front() {
                            Some(block) => start_of(*block, tti),
                            None => requests.at_or_after(arrived),
                        }
                    }
                };
                *last = Some(asked);
                asked.saturating_add(*grant_delay)
            }
        }
    }

    /// Opens block `number`, or the next block with a free process and capacity; `None` if there is
    /// none.
    fn open(&mut self, number: u64) -> Option<Block> {
        let processes = self.free.len() as u64;
        let process = |number: u64| usize::try_from(number % processes).unwrap_or(0);
        let mut number = number;
        let size = loop {
            number = (number..number.saturating_add(processes))
                .find(|number| self.free[process(*number)] <= *number)
                .or_else(|| self.free.iter().copied().min())?;
            let start = self.start_of(number);
            if start.as_picos() >= Instant::NEVER.as_picos() - self.tti.as_picos() {
                return None;
            }
            let size = self.capacity.capacity(start, start + self.tti);
            if size > 0.0 {
                break size;
            }
            let first_bit = self.capacity.finish(start, 1);
            if first_bit == Instant::NEVER {
                return None;
            }
            number = (first_bit.as_picos() / self.tti.as_picos()).max(number + 1);
        };
        let mut draw = self.stream.at(number.saturating_add(1));
        let mut failures = 0;
        while self.error_rate > 0.0 && draw.chance(self.error_rate) {
            failures += 1;
        }
        self.free[process(number)] = number + processes * (failures + 1);
        if let Access::Requested { blocks, .. } = &mut self.access {
            blocks.push_back(number);
        }
        let through = self.start_of(number + 1 + processes * failures);
        Some(Block {
            number,
            size,
            taken: 0.0,
            through: through.saturating_add(self.decoding),
        })
    }

    /// When the last bit taken from `block` is on the air.
    fn position(&self, block: Block) -> Instant {
        self.start_of(block.number) + self.tti.mul_f64((block.taken / block.size).min(1.0))
    }
}

impl Service for Cellular {
    fn arrived(&mut self, at: Instant) {
        self.arrived = at;
    }

    fn finish(&mut self, now: Instant, bits: u64) -> Instant {
        let ready = self.ready(self.arrived);
        let mut left = bits as f64;
        // Packets that were ready when the last block was filled share it.
        let shared = self.block.filter(|block| {
            now == self.end && ready <= self.start_of(block.number) && block.taken < block.size
        });
        let mut next = self.block_from(now.max(ready));
        if let Some(last) = self.block {
            next = next.max(last.number + 1);
        }
        let mut open = shared;
        for _ in 0..MOST_BLOCKS {
            let Some(mut block) = open.or_else(|| self.open(next)) else {
                return Instant::NEVER;
            };
            open = None;
            next = block.number + 1;
            let taken = left.min(block.size - block.taken);
            block.taken += taken;
            left -= taken;
            self.block = Some(block);
            self.delivered = self.delivered.max(block.through);
            if left <= 0.0 {
                self.end = self.position(block);
                return self.end;
            }
        }
        let from = self.start_of(next);
        self.end = self.capacity.finish(from, super::whole_bits(left).max(1));
        self.delivered = self.end.saturating_add(self.decoding);
        self.end
    }

    fn capacity(&self, from: Instant, to: Instant) -> f64 {
        self.capacity.capacity(from, to)
    }

    /// An interrupted block is lost.
    fn interrupt(&mut self, _since: Instant, _now: Instant) -> u64 {
        self.block = None;
        if let Access::Requested { blocks, .. } = &mut self.access {
            blocks.clear();
        }
        0
    }

    fn lag(&self) -> Duration {
        self.delivered.saturating_since(self.end)
    }
}
