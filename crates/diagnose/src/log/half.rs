//! One end's packets with data, and the other end's acknowledgments of them.

use std::collections::BTreeMap;

use super::streams::Streams;
use crate::{connection::ranges::Ranges, segment::LostBy};

/// Maximum number of unacknowledged packets that are remembered; beyond it the oldest is dropped.
const MOST_PACKETS: usize = 1 << 16;

/// Added to packet numbers, so that the handshake's timestamps are earlier.
const FIRST_STAMP: u32 = 1000;

/// The timestamp of a packet: its number.
#[expect(clippy::cast_possible_truncation, reason = "modulo 2^32")]
pub(super) const fn stamp(number: u64) -> u32 {
    (number as u32).wrapping_add(FIRST_STAMP)
}

/// An acknowledgment as TCP would send it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Ack {
    /// The cumulative acknowledgment.
    pub(super) una: i64,
    /// Ranges above it that are newly acknowledged, in ascending order.
    pub(super) blocks: Vec<(i64, i64)>,
    /// The timestamp of the packet that it acknowledges.
    pub(super) echo: u32,
}

/// A packet with data.
#[derive(Debug, Default)]
struct Sent {
    ranges: Vec<(i64, i64)>,
    /// Octets of the packet.
    octets: i64,
    is_lost: bool,
}

/// The data of one end.
#[derive(Debug, Default)]
pub(super) struct Half {
    pub(super) streams: Streams,
    /// Packets that have not been acknowledged.
    packets: BTreeMap<u64, Sent>,
    pub(super) una: i64,
    /// Acknowledged data above `una`.
    acked: Ranges,
    /// Data that was sent more than once.
    repeated: Ranges,
    /// Data of packets that were declared lost, by reason.
    lost: [Ranges; 2],
    /// Data that was declared lost and is assumed to be sent next, for logs without frames.
    pub(super) pending: Vec<(i64, i64)>,
    /// Octets of packets in flight.
    pub(super) flight: i64,
    /// The timestamp of the last packet.
    pub(super) stamp: u32,
    /// The timestamp of the largest packet that was acknowledged.
    pub(super) echo: u32,
}

impl Half {
    /// Records a packet with data of `octets` octets. Returns the reason for which its data had
    /// been declared lost. `next` is one past the data of earlier packets.
    pub(super) fn send(
        &mut self,
        number: u64,
        ranges: &[(i64, i64)],
        octets: i64,
        next: i64,
    ) -> Option<LostBy> {
        let mut lost = None;
        for &(start, end) in ranges.iter().filter(|range| range.0 < next) {
            self.repeated.add(start, end.min(next));
            let reasons = [LostBy::Time, LostBy::Reordering];
            for (by, ranges) in reasons.into_iter().zip(&mut self.lost) {
                if ranges.remove(start, end) > 0 {
                    lost = Some(by);
                }
            }
        }
        if !ranges.is_empty() {
            self.flight += octets;
            let sent = Sent {
                ranges: ranges.to_vec(),
                octets,
                is_lost: false,
            };
            self.packets.insert(number, sent);
            if self.packets.len() > MOST_PACKETS {
                self.packets.pop_first();
            }
        }
        lost
    }

    /// Records that a packet was declared lost.
    pub(super) fn lose(&mut self, number: u64, by: Option<LostBy>) {
        let Some(sent) = self.packets.get_mut(&number).filter(|sent| !sent.is_lost) else {
            return;
        };
        sent.is_lost = true;
        self.flight -= sent.octets;
        for &(start, end) in &sent.ranges {
            match by {
                Some(LostBy::Time) => self.lost[0].add(start, end),
                Some(LostBy::Reordering) => self.lost[1].add(start, end),
                Some(LostBy::Probe) | None => {}
            }
        }
    }

    /// Removes a packet that has arrived. Returns its data.
    fn take(&mut self, number: u64) -> Option<Vec<(i64, i64)>> {
        let sent = self.packets.remove(&number)?;
        if !sent.is_lost {
            self.flight -= sent.octets;
        }
        Some(sent.ranges)
    }

    /// Assumes that the data of a lost packet is sent next, for logs without frames.
    pub(super) fn repeat(&mut self, number: u64) {
        if let Some(sent) = self.packets.remove(&number) {
            self.pending.extend(sent.ranges);
        }
    }

    /// Processes ranges of packet numbers that the other end acknowledges, in ascending order.
    ///
    /// Data that was sent more than once is acknowledged packet by packet, so that it is known
    /// which copy arrived.
    pub(super) fn acknowledge(&mut self, ranges: &[(u64, u64)]) -> Vec<Ack> {
        let mut acks = Vec::new();
        let mut group = Vec::new();
        for &(first, last) in ranges {
            while let Some((&number, _)) = self.packets.range(first..=last).next() {
                let Some(data) = self.take(number) else {
                    break;
                };
                let is_repeated = data
                    .iter()
                    .any(|(start, end)| self.repeated.overlap(*start, *end) > 0);
                if is_repeated {
                    self.flush(&mut group, &mut acks);
                }
                self.echo = stamp(number);
                group.extend(data);
                if is_repeated {
                    self.flush(&mut group, &mut acks);
                }
            }
            self.echo = stamp(last);
        }
        self.flush(&mut group, &mut acks);
        acks
    }

    /// Acknowledges the oldest data until `flight` octets are outstanding, for logs without frames.
    pub(super) fn reduce(&mut self, flight: i64) -> Vec<Ack> {
        let (mut acks, mut group) = (Vec::new(), Vec::new());
        while let Some((&number, sent)) = self.packets.first_key_value()
            && self.flight - sent.octets / 2 >= flight
        {
            self.echo = stamp(number);
            group.extend(self.take(number).unwrap_or_default());
        }
        self.flush(&mut group, &mut acks);
        acks
    }

    /// Turns acknowledged ranges into an acknowledgment.
    fn flush(&mut self, group: &mut Vec<(i64, i64)>, acks: &mut Vec<Ack>) {
        if group.is_empty() {
            return;
        }
        group.sort_unstable();
        let mut fresh: Vec<(i64, i64)> = Vec::new();
        for (start, end) in group.drain(..) {
            let start = start.max(self.una);
            if end <= start || self.acked.overlap(start, end) == end - start {
                continue;
            }
            self.acked.add(start, end);
            match fresh.last_mut() {
                Some(last) if last.1 >= start => last.1 = last.1.max(end),
                _ => fresh.push((start, end)),
            }
        }
        // The lowest range may continue the acknowledged data.
        if self.acked.overlap(self.una, self.una + 1) == 1 {
            self.una = self.acked.end_from(self.una);
            self.acked.remove(i64::MIN / 4, self.una);
            self.repeated.remove(i64::MIN / 4, self.una);
            for lost in &mut self.lost {
                lost.remove(i64::MIN / 4, self.una);
            }
        }
        fresh.retain(|range| range.1 > self.una);
        acks.push(Ack {
            una: self.una,
            blocks: fresh,
            echo: self.echo,
        });
    }

    /// Octets from the acknowledgment to the limit of flow control.
    pub(super) fn window(&self, opener: u64) -> Option<u32> {
        let edge = self.streams.edge(opener)?;
        u32::try_from((edge - self.una).clamp(0, 1 << 30)).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gap_leaves_a_block_and_its_retransmission_fills_it() {
        let mut half = Half::default();
        for (number, start) in (0..4).zip((0..).step_by(100)) {
            half.send(number, &[(start, start + 100)], 100, start);
        }
        let block = Ack {
            una: 100,
            blocks: vec![(200, 400)],
            echo: stamp(3),
        };
        assert_eq!(half.acknowledge(&[(0, 0), (2, 3)]), [block]);
        half.send(4, &[(100, 200)], 100, 400);
        assert_eq!(half.flight, 200);
        let acks = half.acknowledge(&[(0, 0), (2, 4)]);
        assert_eq!((acks[0].una, acks[0].echo), (400, stamp(4)));
    }
}
