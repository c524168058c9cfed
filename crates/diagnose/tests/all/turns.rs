//! Requests and answers: travel time belongs to the network, response time to each program.

use anabranch_diagnose::limit::Limit;
use anabranch_diagnose::report::{Connection, OneWay};

use crate::make::{ACK, MSS, Made, PSH, SYN, report};

/// Delay of the acknowledgment of a single segment, in milliseconds.
const DELAYED: u64 = 40;

/// A client A and a server B that take turns. Times are in milliseconds.
#[derive(Debug, Clone, Copy)]
struct Chat {
    /// One-way delays from A to the capture point, and from there to B.
    ways: [u64; 2],
    /// Response time of each program before it sends.
    thinks: [u64; 2],
    turns: u64,
    /// Segments of an answer; the last one is not full.
    segments: u32,
    /// Requests that A sends before it waits for an answer.
    ahead: u64,
}

impl Default for Chat {
    fn default() -> Self {
        Self {
            ways: [25, 25],
            thinks: [0, 0],
            turns: 40,
            segments: 1,
            ahead: 1,
        }
    }
}

/// The packets of a chat, with times at their senders.
struct Wire {
    chat: Chat,
    packets: Vec<Made>,
    /// The time of each message of an end, and the number after it.
    sent: [Vec<(u64, u32)>; 2],
    /// The last acknowledgment of each end.
    acked: [u32; 2],
}

impl Wire {
    fn new(chat: Chat) -> Self {
        let mut wire = Self {
            chat,
            packets: Vec::new(),
            sent: Default::default(),
            acked: [0; 2],
        };
        let way = wire.way();
        wire.add(0, 0, 0, SYN);
        wire.add(1, way, 0, SYN | ACK);
        wire.add(0, 2 * way, 0, ACK);
        wire
    }

    fn way(&self) -> u64 {
        self.chat.ways.iter().sum()
    }

    fn add(&mut self, from: usize, ms: u64, payload: u32, flags: u8) {
        let arrived = self.sent[1 - from]
            .iter()
            .rev()
            .find(|(at, _)| at + self.way() <= ms);
        self.acked[from] = arrived.map_or(0, |(_, next)| *next);
        let first = self.sent[from].last().map_or(0, |(_, next)| *next);
        let options = if flags & SYN == 0 {
            vec![]
        } else {
            vec![2, 4, 3, 232]
        };
        self.packets.push(Made {
            micros: 1_000_000_000 + (ms + self.chat.ways[from]) * 1_000,
            from,
            ports: (5000, 80),
            seq: 70_000 + first,
            ack: if flags & ACK == 0 {
                0
            } else {
                70_000 + self.acked[from]
            },
            flags,
            window: 60_000,
            payload: u16::try_from(payload).expect("16 bits"),
            id: 0,
            hops: 64,
            options,
        });
        let syn = u32::from(flags & SYN != 0);
        self.sent[from].push((ms, first + payload + syn));
    }

    /// Adds a message that `from` begins to prepare at `ms`. Returns its arrival. A single segment
    /// is acknowledged late.
    fn message(&mut self, from: usize, ms: u64, segments: u32) -> u64 {
        let think = self.chat.thinks[from];
        // Two segments are acknowledged at once.
        let delay = if from == 0 && self.chat.segments > 1 {
            0
        } else {
            DELAYED
        };
        if think > delay {
            self.add(from, ms + delay, 0, ACK);
        }
        for _ in 1..segments {
            self.add(from, ms + think, MSS, ACK);
        }
        self.add(from, ms + think, 200, ACK | PSH);
        ms + think + self.way()
    }

    fn connection(mut self) -> Connection {
        self.packets.sort_by_key(|packet| packet.micros);
        let mut report = report(&self.packets);
        assert_eq!(report.connections.len(), 1);
        report.connections.remove(0)
    }
}

impl Chat {
    fn round_trip(&self) -> f64 {
        2e-3 * self.ways.iter().sum::<u64>() as f64
    }

    fn connection(self) -> Connection {
        let mut wire = Wire::new(self);
        let mut ms = 2 * wire.way();
        for _ in 0..self.turns {
            let mut asked = ms;
            for _ in 0..self.ahead {
                asked = wire.message(0, ms, 1);
            }
            for _ in 0..self.ahead {
                ms = wire.message(1, asked, self.segments);
            }
        }
        wire.add(0, ms, 0, ACK);
        wire.connection()
    }
}

/// Seconds of round trips, of the receiver's program, and of the sender's program.
fn split(way: &OneWay) -> [f64; 3] {
    let application = way.limits_s[&Limit::Application] - way.closing_s;
    [
        way.limits_s[&Limit::RoundTrips],
        way.receiver_application_s,
        application - way.receiver_application_s,
    ]
}

fn causes(connection: &Connection) -> Vec<&'static str> {
    connection
        .findings
        .iter()
        .map(|one| one.cause.meta().name)
        .collect()
}

/// Checks that the shares of both directions are near the planted ones, except for the first and
/// the last turn.
fn is_split_rightly(chat: Chat) {
    let connection = chat.connection();
    let turns = chat.turns as f64;
    let ways = &connection.directions;
    let [client, server] = chat.thinks.map(|ms| ms as f64 * 1e-3 * turns);
    for (way, peer, own) in [
        (&ways.b_to_a, client, server),
        (&ways.a_to_b, server, client),
    ] {
        let wanted = [turns * chat.round_trip(), peer, own];
        let most = chat.round_trip() + (client + server) / turns + 0.02;
        let found = split(way);
        for (found, wanted) in found.iter().zip(wanted) {
            assert!(
                (found - wanted).abs() <= most,
                "{chat:?}: {found} of {wanted}: {way:?}"
            );
        }
    }
    let told = ways.b_to_a.turns;
    assert!(told.abs_diff(chat.turns) <= 1, "{chat:?}: {told} turns");
}

#[test]
fn travel_and_response_times_are_split_at_each_capture_point() {
    for ways in [[0, 50], [1, 49], [25, 25], [50, 0], [2, 3]] {
        for client in [0, 5, 30, 200] {
            for server in [0, 30, 200] {
                for segments in [1, 2, 8] {
                    is_split_rightly(Chat {
                        ways,
                        thinks: [client, server],
                        segments,
                        ..Chat::default()
                    });
                }
            }
        }
    }
}

#[test]
fn programs_that_answer_at_once_are_not_blamed() {
    let connection = Chat::default().connection();
    let found = causes(&connection);
    assert!(found.contains(&"round-trips"), "{found:?}");
    assert!(
        !found.contains(&"slow-client") && !found.contains(&"application"),
        "{found:?}"
    );
    let text = &connection.findings[0].text;
    assert!(text.contains("answered 40 requests"), "{text}");
    assert!(
        text.contains("100 ms") && text.contains("would save 1.98 s"),
        "{text}"
    );
}

#[test]
fn requests_are_counted_at_each_capture_point() {
    for ways in [[0, 50], [25, 25], [50, 0]] {
        let chat = Chat {
            ways,
            thinks: [0, 300],
            ..Chat::default()
        };
        let turns = chat.connection().directions.b_to_a.turns;
        assert_eq!(turns, 40, "{ways:?}");
    }
}

#[test]
fn a_slow_client_is_named_beside_the_round_trips() {
    let (thinks, segments) = ([300, 0], 2);
    let chat = Chat {
        thinks,
        segments,
        ..Chat::default()
    };
    let found = causes(&chat.connection());
    assert_eq!(found[..2], ["slow-client", "round-trips"]);
}

#[test]
fn a_slow_server_is_named_with_its_response_time() {
    let thinks = [0, 300];
    let connection = Chat {
        thinks,
        ..Chat::default()
    }
    .connection();
    let first = &connection.findings[0];
    assert_eq!(first.cause.meta().name, "application");
    assert!(
        first
            .text
            .contains("took 300 ms on average to answer 40 requests"),
        "{}",
        first.text
    );
}

#[test]
fn simultaneous_requests_share_their_round_trips() {
    let chat = Chat {
        ahead: 4,
        segments: 2,
        ..Chat::default()
    };
    let ways = chat.connection().directions;
    for way in [&ways.a_to_b, &ways.b_to_a] {
        let [travel, peer, own] = split(way);
        assert!(travel > 3.7, "{way:?}");
        assert!(peer < 0.2 && own < 0.2, "{way:?}");
    }
}

#[test]
fn messages_at_the_clients_pace_cost_no_round_trip() {
    // One message every 23 ms over a round trip of 100 ms, each answered at once.
    let mut wire = Wire::new(Chat::default());
    let mut events: Vec<(u64, usize)> = (0..200).map(|k| (100 + 23 * k, 0)).collect();
    events.extend((0..200).map(|k| (150 + 23 * k, 1)));
    events.sort_unstable();
    for (ms, from) in events {
        wire.add(from, ms, 100, ACK | PSH);
    }
    let connection = wire.connection();
    let way = &connection.directions.b_to_a;
    let [travel, peer, _] = split(way);
    assert!(travel < 0.3 && peer > 3.5, "{way:?}");
    assert!(way.turns <= 2, "{}", way.turns);
}

#[test]
fn a_long_request_is_not_a_round_trip() {
    // The client sends for 4 s; a short answer follows.
    let mut wire = Wire::new(Chat::default());
    for k in 0..40 {
        let ms = 100 + 100 * k;
        for _ in 0..10 {
            wire.add(0, ms, MSS, ACK);
        }
        wire.add(1, ms + 50, 0, ACK);
    }
    wire.add(1, 4_050, 200, ACK | PSH);
    wire.add(0, 4_100, 0, ACK);
    let connection = wire.connection();
    let found = causes(&connection);
    assert!(
        !found.contains(&"round-trips") && !found.contains(&"slow-client"),
        "{found:?}"
    );
    let way = &connection.directions.b_to_a;
    assert!(way.turns <= 1 && way.turns_s < 0.15, "{way:?}");
    assert!(way.receiver_application_s < 0.1, "{way:?}");
}

#[test]
fn the_queue_of_a_long_answer_is_the_bottlenecks() {
    // Near the server, 29 segments leave at once, and a queue of the path delivers one every 2 ms.
    let ways = [49, 1];
    let mut wire = Wire::new(Chat {
        ways,
        ..Chat::default()
    });
    let mut ms = 100;
    for turn in 0..30 {
        wire.add(0, ms, 200, ACK | PSH);
        let answer = ms + 50;
        for k in 0..29 {
            wire.add(1, answer, MSS, if k == 28 { ACK | PSH } else { ACK });
        }
        for k in 1..15 {
            wire.add(0, answer + 50 + 4 * u64::from(k), 0, ACK);
            let acknowledged = (29 * turn + 2 * k) * MSS;
            wire.packets.last_mut().expect("a packet").ack = 70_001 + acknowledged;
        }
        // The last segment arrives 60 ms later than without the queue.
        ms = answer + 50 + 60;
    }
    let connection = wire.connection();
    let way = &connection.directions.b_to_a;
    let [travel, peer, own] = split(way);
    assert!((2.5..3.5).contains(&travel), "{way:?}");
    assert!(
        (1.2..2.0).contains(&way.limits_s[&Limit::Bottleneck]),
        "{way:?}"
    );
    assert!(peer < 0.3 && own < 0.1, "{way:?}");
}
