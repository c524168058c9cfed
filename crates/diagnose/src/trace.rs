//! Data for charts of a connection: segments, acknowledgments, round trips, and limits over time.
//!
//! [`trace`](crate::trace()) reads a capture once more and follows the connections of a [`Watch`].
//! Points are thinned evenly, so that memory is bounded. All packets near the frames of
//! [`Watch::frames`] are kept.

use std::collections::{BTreeSet, VecDeque};

use serde::Serialize;

use crate::{
    limit::Limit,
    segment::{FIN, PSH, RST, SYN, Segment, Sequence},
    time::{Nanos, millis, seconds},
};

/// Packets that are kept before and after a frame of [`Watch::frames`].
const AROUND: usize = 6;

/// The connections to trace, and the bounds on the trace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Watch {
    /// Connections, by their numbers in the report.
    pub connections: Vec<u64>,
    /// Frames whose neighbours are kept.
    pub frames: BTreeSet<u64>,
    /// Maximum number of points of one kind and direction.
    pub points: usize,
}

/// A segment with data: frame, time (s), first octet, one past the last octet.
pub type Sent = (u64, f64, i64, i64);
/// An acknowledgment: time (s), the next expected octet, the right edge of the window if known.
pub type Acknowledged = (f64, i64, Option<i64>);
/// A SACK block above the acknowledgment: time (s), first octet, one past the last octet.
pub type Sacked = (f64, i64, i64);
/// A round trip: time (s) of its end, duration (ms).
pub type RoundTrip = (f64, f64);
/// An interval of time (s), and its limit.
pub type Span = (f64, f64, Limit);

/// Points, evenly thinned.
#[derive(Debug, Serialize)]
pub struct Thinned<T> {
    /// The points that are kept.
    pub points: Vec<T>,
    /// The number of points before thinning.
    pub of: u64,
    #[serde(skip)]
    every: u64,
    #[serde(skip)]
    most: usize,
}

impl<T> Thinned<T> {
    fn new(most: usize) -> Self {
        Self {
            points: Vec::new(),
            of: 0,
            every: 1,
            most: most.max(2),
        }
    }

    fn push(&mut self, point: T) {
        if self.points.len() >= self.most {
            let mut place = 0;
            self.points.retain(|_| {
                place += 1;
                place % 2 == 1
            });
            self.every *= 2;
        }
        if self.of.is_multiple_of(self.every) {
            self.points.push(point);
        }
        self.of += 1;
    }
}

/// The data of one direction.
#[derive(Debug, Serialize)]
pub struct OneWay {
    /// Segments with data, retransmissions included.
    pub sent: Thinned<Sent>,
    /// Acknowledgments by the other end.
    pub acknowledged: Thinned<Acknowledged>,
    /// SACK blocks.
    pub sacked: Thinned<Sacked>,
    /// Round trips.
    pub round_trips: Thinned<RoundTrip>,
    /// The limits over time, without gaps.
    pub limits: Vec<Span>,
    /// One past the highest octet that was sent.
    #[serde(skip)]
    highest: i64,
}

/// A packet near a frame that is watched.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Near {
    /// The frame.
    pub packet: u64,
    /// Its index among the packets of the connection, from 0.
    pub index: u64,
    /// When it passed (s).
    pub time_s: f64,
    /// `a` or `b`.
    pub from: &'static str,
    /// Its first octet; `None` until the initial sequence number is known.
    pub seq: Option<i64>,
    /// Octets of payload.
    pub bytes: u32,
    /// The next octet that it expects.
    pub ack: Option<i64>,
    /// The receiver's window, from `ack`, if its scale is known.
    pub window: Option<i64>,
    /// `SYN`, `FIN`, `RST`, `PSH`.
    pub flags: Vec<&'static str>,
    /// SACK blocks, including D-SACK: first octet, one past the last octet.
    pub sacks: Vec<(i64, i64)>,
}

/// One connection.
#[derive(Debug, Serialize)]
pub struct Trace {
    /// Its number in the report.
    pub id: u64,
    /// The data of `a`.
    pub a_to_b: OneWay,
    /// The data of `b`.
    pub b_to_a: OneWay,
    /// Packets near the frames that are watched.
    pub packets: Vec<Near>,
}

/// The trace of a connection while it is open.
#[derive(Debug)]
pub(crate) struct Tracer {
    trace: Trace,
    frames: BTreeSet<u64>,
    /// The latest packets, kept until one near a watched frame arrives.
    ring: VecDeque<Near>,
    /// Number of further packets to keep.
    left: usize,
    index: u64,
    /// The last sequence number and acknowledgment of each end.
    near: [(i64, i64); 2],
}

impl Tracer {
    pub(crate) fn new(id: u64, watch: &Watch) -> Self {
        let one_way = || OneWay {
            sent: Thinned::new(watch.points),
            acknowledged: Thinned::new(watch.points),
            sacked: Thinned::new(watch.points),
            round_trips: Thinned::new(watch.points),
            limits: Vec::new(),
            highest: 0,
        };
        Self {
            trace: Trace {
                id,
                a_to_b: one_way(),
                b_to_a: one_way(),
                packets: Vec::new(),
            },
            frames: watch.frames.clone(),
            ring: VecDeque::new(),
            left: 0,
            index: 0,
            near: [(0, 0); 2],
        }
    }

    fn way(&mut self, from: usize) -> &mut OneWay {
        if from == 0 {
            &mut self.trace.a_to_b
        } else {
            &mut self.trace.b_to_a
        }
    }

    /// Adds a segment of the end `from`. `sequences` are the initial sequence numbers of that end
    /// and of its peer, once known.
    pub(crate) fn add(
        &mut self,
        segment: &Segment,
        from: usize,
        sequences: [Option<u32>; 2],
        window: Option<i64>,
    ) {
        let [own, peers] = sequences.map(|first| first.map(Sequence::new));
        let time_s = seconds(segment.time);
        let seq = own.map(|own| own.unwrap(segment.seq, self.near[from].0));
        let ack = peers.and_then(|peers| Some(peers.unwrap(segment.ack?, self.near[from].1)));
        let sacks: Vec<(i64, i64)> = match (peers, ack) {
            (Some(peers), Some(ack)) => segment
                .blocks()
                .iter()
                .map(|(start, end)| (peers.unwrap(*start, ack), peers.unwrap(*end, ack)))
                .collect(),
            _ => Vec::new(),
        };
        if let Some(seq) = seq.filter(|_| segment.payload > 0) {
            let end = seq + i64::from(segment.payload);
            self.near[from].0 = end;
            let way = self.way(from);
            way.highest = way.highest.max(end);
            way.sent.push((segment.number, time_s, seq, end));
        }
        if let Some(ack) = ack.filter(|_| !segment.has(SYN | RST)) {
            self.near[from].1 = ack;
            let way = self.way(1 - from);
            way.acknowledged
                .push((time_s, ack, window.map(|window| ack + window)));
            let top = way.highest;
            let of_data = |(start, end): &&(i64, i64)| *start >= ack && *end <= top;
            for (start, end) in sacks.iter().filter(of_data) {
                way.sacked.push((time_s, *start, *end));
            }
        }
        self.keep(Near {
            packet: segment.number,
            index: self.index,
            time_s,
            from: ["a", "b"][from],
            seq,
            bytes: segment.payload,
            ack,
            window,
            flags: [(SYN, "SYN"), (FIN, "FIN"), (RST, "RST"), (PSH, "PSH")]
                .into_iter()
                .filter(|(flag, _)| segment.has(*flag))
                .map(|(_, name)| name)
                .collect(),
            sacks,
        });
        self.index += 1;
    }

    fn keep(&mut self, packet: Near) {
        if self.frames.contains(&packet.packet) {
            self.trace.packets.extend(self.ring.drain(..));
            self.left = AROUND + 1;
        }
        if self.left > 0 {
            self.left -= 1;
            self.trace.packets.push(packet);
            return;
        }
        if self.ring.len() >= AROUND {
            self.ring.pop_front();
        }
        self.ring.push_back(packet);
    }

    /// Adds a round trip between the capture point and the receiver of the end `from`.
    pub(crate) fn round_trip(&mut self, from: usize, time: Nanos, rtt: Nanos) {
        self.way(from)
            .round_trips
            .push((seconds(time), millis(rtt)));
    }

    /// Ends the trace. `back` is the minimum round-trip time between the capture point and each
    /// sender.
    pub(crate) fn end(mut self, back: [Nanos; 2], limits: [Vec<Span>; 2]) -> Trace {
        for (from, (back, limits)) in back.into_iter().zip(limits).enumerate() {
            let way = self.way(from);
            for (_, rtt) in &mut way.round_trips.points {
                *rtt += millis(back);
            }
            way.limits = limits;
        }
        self.trace
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn thinning_keeps_even_steps_within_its_bound(count in 0_u64..5000, most in 2_usize..100) {
            let mut thinned = Thinned::new(most);
            for point in 0..count {
                thinned.push(point);
            }
            prop_assert!(thinned.points.len() <= most);
            prop_assert_eq!(thinned.of, count);
            prop_assert!(count == 0 || thinned.points.first() == Some(&0));
            prop_assert!(thinned.points.windows(2).all(|pair| pair[1] - pair[0] == thinned.every));
            prop_assert!(thinned.every == 1 || 2 * thinned.points.len() + 1 >= most);
        }
    }
}
