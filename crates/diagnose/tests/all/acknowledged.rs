//! Limits of a sender that always has data, with lost and late acknowledgments.

use crate::make::{ACK, MSS, Made, PSH, SYN, report};
use anabranch_diagnose::limit::Limit;
use anabranch_diagnose::report::{Connection, OneWay};

/// Packets between A, which sends, and B. Times are in microseconds at the capture point, and the
/// first octet of data is 1.
#[derive(Default)]
struct Wire {
    packets: Vec<Made>,
}

impl Wire {
    /// Answers A's SYN after `there`, and acknowledges the answer after `back`.
    fn opened(there: u64, back: u64) -> Self {
        let mut wire = Self::default();
        let options = vec![2, 4, 3, 232, 4, 2];
        wire.add(0, 0, 0, 0, SYN, options.clone());
        wire.add(there, 1, 0, 0, SYN | ACK, options);
        wire.add(there + back, 0, 1, 0, ACK, vec![]);
        wire
    }

    fn add(
        &mut self,
        micros: u64,
        from: usize,
        number: u32,
        payload: u32,
        flags: u8,
        options: Vec<u8>,
    ) {
        let (seq, ack) = if from == 0 { (number, 1) } else { (1, number) };
        self.packets.push(Made {
            micros: 1_000_000_000 + micros,
            from,
            ports: (5000, 80),
            seq: 70_000 + if flags & SYN == 0 { seq } else { 0 },
            ack: if flags & ACK == 0 {
                0
            } else {
                70_000 + ack.max(1)
            },
            flags,
            window: 60_000,
            payload: u16::try_from(payload).expect("16 bits"),
            id: 0,
            hops: 64,
            options,
        });
    }

    fn data(&mut self, micros: u64, start: u32, payload: u32) {
        let push = if payload < MSS { PSH } else { 0 };
        self.add(micros, 0, 1 + start, payload, ACK | push, vec![]);
    }

    fn ack(&mut self, micros: u64, end: u32, blocks: &[(u32, u32)]) {
        let mut options = vec![];
        if !blocks.is_empty() {
            options.extend([5, u8::try_from(2 + 8 * blocks.len()).expect("few")]);
            for edge in blocks.iter().flat_map(|(start, end)| [start, end]) {
                options.extend((70_001 + edge).to_be_bytes());
            }
        }
        self.add(micros, 1, 1 + end, 0, ACK, options);
    }

    fn connection(mut self) -> Connection {
        self.packets.sort_by_key(|packet| packet.micros);
        let mut report = report(&self.packets);
        assert_eq!(report.connections.len(), 1);
        report.connections.remove(0)
    }

    fn sent(self) -> OneWay {
        self.connection().directions.a_to_b
    }
}

const MS: u64 = 1_000;

/// A buffer of 40 segments over a round trip of 60 ms. Its writer is woken when `left` segments are
/// in flight. If `tail`, the end of a write leaves earlier, when half as much has been
/// acknowledged.
fn buffered(left: u32, tail: bool) -> OneWay {
    let mut wire = Wire::opened(60 * MS, 300);
    let (mut sent, mut acked, mut now) = (0, 0, 61 * MS);
    for turn in 0..40 {
        let mut first = now;
        while sent < acked + 40 * MSS {
            wire.data(first, sent, MSS);
            sent += MSS;
            first += 10;
        }
        // Data sent a round trip ago is acknowledged at the rate of the path.
        now = now.max(if turn == 0 { now + 60 * MS } else { 0 });
        let mut is_tail_due = tail;
        while sent - acked > left * MSS {
            now += MS;
            acked = (acked + MSS).min(sent);
            wire.ack(now, acked, &[]);
            if is_tail_due && sent - acked <= (20 + left / 2) * MSS {
                wire.data(now + 50, sent, 300);
                sent += 300;
                is_tail_due = false;
            }
        }
        now += 100;
    }
    wire.sent()
}

#[test]
fn a_third_of_the_buffer_wakes_its_writer() {
    for left in [5, 12, 18, 22] {
        let way = buffered(left, false);
        let whole: f64 = way.limits_s.values().sum();
        assert!(
            way.limits_s[&Limit::SendBuffer] > 0.6 * whole,
            "{left}: {:?}",
            way.limits_s
        );
    }
}

#[test]
fn the_end_of_a_write_does_not_hide_a_send_buffer() {
    for left in [5, 12] {
        let way = buffered(left, true);
        let whole: f64 = way.limits_s.values().sum();
        assert!(
            way.limits_s[&Limit::Application] < 0.1 * whole,
            "{left}: {:?}",
            way.limits_s
        );
        assert!(
            way.limits_s[&Limit::SendBuffer] > 0.4 * whole,
            "{left}: {:?}",
            way.limits_s
        );
    }
}

/// A window of 40 segments over 60 ms. Only each `every`th acknowledgment is sent: the others are
/// lost, or arrive together with it if `is_late`. The host takes 50 µs to send more, and `first`
/// for its first response.
fn clocked(every: u32, is_late: bool, first: u64) -> OneWay {
    let mut wire = Wire::opened(60 * MS, first);
    let mut now = 60 * MS + first;
    for k in 0..40 {
        wire.data(now + 10 * u64::from(k), k * MSS, MSS);
    }
    let mut sent = 40;
    now += 60 * MS;
    for k in 1..2_000 {
        now += 1_200;
        if k % every != 0 {
            continue;
        }
        let from = if is_late { k - every + 1 } else { k };
        for end in from..=k {
            wire.ack(now + u64::from(end - from), end * MSS, &[]);
        }
        while sent < k + 40 {
            wire.data(
                now + 50 + u64::from(every) + u64::from(sent + every - k - 40) * 10,
                sent * MSS,
                MSS,
            );
            sent += 1;
        }
    }
    wire.sent()
}

#[test]
fn lost_and_late_acknowledgments_are_not_the_applications() {
    for every in [1, 2, 5, 10, 18] {
        for is_late in [false, true] {
            let way = clocked(every, is_late, 100);
            let whole: f64 = way.limits_s.values().sum();
            let window = way.limits_s[&Limit::CongestionWindow] + way.limits_s[&Limit::Bottleneck];
            // A constant window looks like a send buffer.
            let held = window + way.limits_s[&Limit::SendBuffer];
            assert!(held > 0.9 * whole, "{every} {is_late}: {:?}", way.limits_s);
        }
    }
}

#[test]
fn a_slow_first_response_is_not_pacing() {
    for first in [300, 1_000, 2_000] {
        let way = clocked(2, false, first);
        let whole: f64 = way.limits_s.values().sum();
        assert!(
            way.limits_s[&Limit::Pacing] < 0.05 * whole,
            "{first}: {:?}",
            way.limits_s
        );
        assert!(
            way.limits_s[&Limit::Application] < 0.05 * whole,
            "{first}: {:?}",
            way.limits_s
        );
    }
}

#[test]
fn a_pace_far_from_the_sender_is_undecided() {
    // 25 segments in flight, one every 2 ms, 25 ms from the capture point to each end.
    let mut wire = Wire::opened(25 * MS, 25 * MS);
    for k in 0..2_000 {
        let now = 75 * MS + 2 * MS * u64::from(k);
        wire.data(now, k * MSS, MSS);
        wire.ack(now + 25 * MS, (k + 1) * MSS, &[]);
    }
    let connection = wire.connection();
    let limits = &connection.directions.a_to_b.limits_s;
    assert!(
        limits[&Limit::SendBuffer] == 0.0 && limits[&Limit::Application] < 0.1,
        "{limits:?}"
    );
}

#[test]
fn a_probe_with_new_data_ends_a_timer() {
    // The probe comes after 1.7 smoothed round trips: the sender's estimate is smaller than ours.
    let mut wire = Wire::opened(60 * MS, 100);
    let mut now = 61 * MS;
    let mut sent = 0;
    for turn in 0..30 {
        for _ in 0..10 {
            wire.data(now, sent, MSS);
            sent += MSS;
        }
        if turn == 29 {
            break;
        }
        now += 60 * MS;
        for k in 0..10 {
            wire.ack(
                now + k,
                sent - (9 - u32::try_from(k).expect("few")) * MSS,
                &[],
            );
        }
        now += 100;
    }
    wire.data(now + 102 * MS, sent, MSS);
    wire.ack(now + 163 * MS, sent + MSS, &[]);
    let way = wire.sent();
    assert!(
        way.limits_s[&Limit::RetransmissionTimeout] > 0.1,
        "{:?}",
        way.limits_s
    );
    assert!(
        way.limits_s[&Limit::Application] < 0.01,
        "{:?}",
        way.limits_s
    );
}

#[test]
fn sacks_in_lost_acknowledgments_are_not_reordering() {
    let mut wire = Wire::opened(60 * MS, 100);
    let mut now = 61 * MS;
    for turn in 0..5 {
        let base = turn * 20 * MSS;
        let at = |k: u32| base + k * MSS;
        for k in 0..20 {
            wire.data(now, at(k), MSS);
        }
        // Segments 0 and 2 are lost. The acknowledgments that SACK 1 and 3 are lost as well, and
        // later options have no room for them.
        now += 60 * MS;
        let blocks = [
            (at(12), at(13)),
            (at(9), at(10)),
            (at(6), at(7)),
            (at(4), at(5)),
        ];
        wire.ack(now, base, &blocks);
        for k in [0, 2] {
            wire.data(now + 100, at(k), MSS);
        }
        // 3 had arrived.
        wire.ack(now + 60 * MS, at(20), &[]);
        now += 61 * MS;
    }
    let way = wire.sent();
    assert_eq!(way.reordered_after_packets, 0, "{way:?}");
}
