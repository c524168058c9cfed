//! The sending half: the open group, the redundant packets that are due, and the redundant packets
//! in flight.
//!
//! Data that is sent for the first time joins the open group; retransmissions belong to no group. A
//! group is closed, and its redundant packets are made, when it is full, after a packet shorter
//! than the previous ones, before a longer one, and when the application has no more data to send.
//! The redundancy controller selects the shape of the next group (Sato et al. §3.2).
//!
//! On octets, XOR uses the memory of one packet; the other codes store the packets that they still
//! need.

use std::collections::VecDeque;

use anabranch_core::{body::Body, units::Instant};

use super::{
    params::{Config, Params},
    redundancy::{AnyRedundancy, Redundancy, Shape, View},
};
use anabranch_erasure::{AnyCode, Code, xor::Sum};
use anabranch_wire::{
    Segment, Seq,
    redundant::{Redundant, Tag, checksum},
};

/// A data packet that a redundant packet may have to cover.
#[derive(Debug)]
struct Source<B> {
    seq: u32,
    len: u16,
    share: u32,
    body: B,
}

/// The open group.
#[derive(Debug, Default)]
struct Group {
    first: u32,
    next: u32,
    count: u16,
    size: u16,
    lengths: u16,
    checksum: u32,
    sum: Sum,
}

/// See the module.
#[derive(Debug)]
pub struct Sender<B> {
    code: AnyCode,
    config: Config,
    /// The congestion window at the last packet sent.
    cwnd: u32,
    most: u32,
    occupies: bool,
    redundancy: AnyRedundancy,
    shape: Option<Shape>,
    tag: Tag,
    group: Group,
    /// Packets that the codes other than XOR still need, in order.
    sources: VecDeque<Source<B>>,
    key: u16,
    due: VecDeque<Redundant<B>>,
    /// Redundant packets in flight, as one past the data that they cover.
    in_flight: VecDeque<Seq>,
}

impl<B: Body> Sender<B> {
    /// Creates a sender before the first transmission.
    #[must_use]
    pub fn new(code: AnyCode, config: &Config, params: &Params) -> Self {
        Self {
            code,
            config: config.clone(),
            cwnd: 1,
            most: code.most_sources(),
            occupies: params.occupies_cwnd,
            redundancy: AnyRedundancy::new(params, config.most_adaptive()),
            shape: None,
            tag: Tag::FIRST,
            group: Group::default(),
            sources: VecDeque::new(),
            key: 0,
            due: VecDeque::new(),
            in_flight: VecDeque::new(),
        }
    }

    /// The controller.
    pub fn redundancy(&mut self) -> &mut AnyRedundancy {
        &mut self.redundancy
    }

    fn shape(&mut self, view: &View) -> Shape {
        let Some(shape) = self.shape else {
            let mut shape = self.redundancy.next_group(view);
            shape.sources = shape.sources.min(self.most).max(1);
            self.shape = Some(shape);
            return shape;
        };
        shape
    }

    /// Adds a data packet that is sent for the first time, and writes its group's number.
    ///
    /// # Panics
    /// If it is longer than IP can carry.
    pub fn on_data(&mut self, view: &View, segment: &mut Segment<B>) {
        let len = u16::try_from(segment.body.len()).expect("a packet is shorter than 64 KiB");
        if self.group.count > 0 && (len > self.group.size || segment.seq != self.group.next) {
            self.close();
        }
        let most = self.shape(view).sources;
        self.cwnd = view.cwnd;
        self.tag.write(segment);
        let octets = segment.body.octets();
        let share = octets.map_or(0, |octets| checksum(segment.seq, octets));
        let group = &mut self.group;
        if group.count == 0 {
            group.first = segment.seq;
            group.size = len;
            // A window covers consecutive packets of one length. Only the last may be shorter,
            // because otherwise the lengths would not determine its end.
            let of_this_length = self.sources.front().is_some_and(|first| first.len == len);
            let fits = of_this_length
                && self.sources.back().is_some_and(|last| {
                    last.len == len && last.seq.wrapping_add(u32::from(len)) == segment.seq
                });
            if !fits {
                self.sources.clear();
            }
        }
        group.next = segment.seq.wrapping_add(u32::from(len));
        group.count += 1;
        group.lengths ^= len;
        group.checksum = group.checksum.wrapping_add(share);
        if let AnyCode::Xor(_) = self.code {
            if let Some(octets) = octets {
                group.sum.add(octets);
            }
        } else {
            self.sources.push_back(Source {
                seq: segment.seq,
                len,
                share,
                body: segment.body.clone(),
            });
        }
        if u32::from(group.count) >= most || len < group.size {
            self.close();
        }
    }

    /// Closes the open group, if there is one. Its redundant packets are due.
    pub fn close(&mut self) {
        if self.group.count == 0 {
            return;
        }
        let redundant = self.shape.take().map_or(1, |shape| shape.redundant);
        match self.code {
            AnyCode::Xor(_) => self.close_sum(),
            AnyCode::ReedSolomon(_) => self.close_window(self.group.count.into(), redundant),
            AnyCode::SlidingRlc(_) => {
                let window = self.config.window(self.cwnd);
                let covered = window.max(self.group.count.into()).min(self.most);
                self.close_window(covered, redundant);
            }
        }
        self.group.sum.clear();
        self.group = Group {
            sum: std::mem::take(&mut self.group.sum),
            ..Group::default()
        };
        self.tag = self.tag.next();
    }

    fn close_sum(&mut self) {
        let group = &self.group;
        self.due.push_back(Redundant {
            first: group.first,
            count: group.count,
            size: group.size,
            lengths: group.lengths,
            key: 0x100,
            checksum: group.checksum,
            body: B::from_octets(group.sum.octets(), group.size.into()),
        });
    }

    /// Makes redundant packets over the last `covered` packets.
    fn close_window(&mut self, covered: u32, redundant: u16) {
        while self.sources.len() > covered as usize {
            self.sources.pop_front();
        }
        let slides = matches!(self.code, AnyCode::SlidingRlc(_));
        let first = self.sources.front().expect("the group's own packets");
        let size = first.len;
        let whole = Redundant {
            first: first.seq,
            count: u16::try_from(self.sources.len()).expect("a window of 255 packets at most"),
            size,
            lengths: self.sources.iter().fold(0, |xor, source| xor ^ source.len),
            key: 0,
            checksum: self
                .sources
                .iter()
                .fold(0, |sum, source| sum.wrapping_add(source.share)),
            body: B::default(),
        };
        let octets: Option<Vec<&[u8]>> = self.sources.iter().map(|s| s.body.octets()).collect();
        let bodies = octets.map(|sources| {
            let key = if slides { self.key } else { 0 };
            self.code.encode(&sources, key, redundant)
        });
        for k in 0..redundant {
            let key = if slides {
                self.key.wrapping_add(k)
            } else {
                redundant << 8 | k
            };
            let body = match &bodies {
                Some(bodies) => B::from_octets(&bodies[usize::from(k)], 0),
                None if slides => B::filler(size.into()),
                // The code works on pairs of octets.
                None => B::filler(u32::from(size).next_multiple_of(2)),
            };
            self.due.push_back(Redundant { key, body, ..whole });
        }
        if slides {
            self.key = self.key.wrapping_add(redundant);
        } else {
            self.sources.clear();
        }
    }

    /// Whether some data has no redundancy yet.
    #[must_use]
    pub const fn has_open_group(&self) -> bool {
        self.group.count > 0
    }

    /// Returns the next redundant packet, to be sent now. `una` is the cumulative acknowledgment,
    /// for unwrapping its number.
    ///
    /// # Panics
    /// Never: the lengths of the sender's own packets are right.
    pub fn take_due(&mut self, now: Instant, una: Seq) -> Option<Redundant<B>> {
        let packet = self.due.pop_front()?;
        if self.occupies {
            let span = packet.span().expect("made above");
            let end = una.near(packet.first) + u64::from(span);
            self.in_flight.push_back(end);
        }
        self.redundancy.on_sent(now, false);
        Some(packet)
    }

    /// Records that everything before `reached` has arrived, or later data has. Returns the number
    /// of redundant packets that still count as in flight.
    pub fn on_progress(&mut self, reached: Seq) -> usize {
        while self.in_flight.front().is_some_and(|end| *end <= reached) {
            self.in_flight.pop_front();
        }
        self.in_flight.len()
    }

    /// Handles a retransmission timeout: no redundant packet counts as in flight.
    pub fn on_timeout(&mut self) {
        self.in_flight.clear();
    }

    /// Handles the end of the connection: no redundant packet is due.
    pub fn clear(&mut self) {
        self.due.clear();
        self.in_flight.clear();
        self.group = Group::default();
        self.sources.clear();
    }

    /// The number of redundant packets that count as in flight.
    #[must_use]
    pub fn in_flight(&self) -> usize {
        self.in_flight.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_core::{body::Length, parameters::Count};

    /// A short packet ends a window, and equally short packets begin another one. Detects windows
    /// that check only their last packet.
    #[test]
    fn a_window_has_at_most_one_short_packet() {
        let config = Config::SlidingRlc(Params {
            group: Some(Count::new(2)),
            ..Params::default()
        });
        let (code, params) = config.parts().expect("it is on");
        let mut sender: Sender<Length> = Sender::new(code, &config, params);
        let view = View {
            now: Instant::START,
            cwnd: 10,
        };
        let mut next = Seq::first(1);
        let first = next;
        for len in [100_u32, 100, 100, 30, 30, 30, 30, 100, 30] {
            let mut segment = Segment {
                seq: next.wire(),
                body: Length::filler(len),
                ..Segment::default()
            };
            let before = next;
            next += u64::from(len);
            sender.on_data(&view, &mut segment);
            while let Some(packet) = sender.take_due(Instant::START, first) {
                let end =
                    first.near(packet.first) + u64::from(packet.span().expect("it can be told"));
                assert!(
                    end == next || end == before,
                    "a window ends at {end:?}, packets end at {before:?} and {next:?}"
                );
            }
        }
    }
}
