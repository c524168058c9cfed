//! Decisions of a queue over recorded arrivals: departures, drops and marks.
//!
//! The queue belongs to a link as the engine runs it. `examples/decisions.rs` uses the same code
//! for the comparison with the kernel's queues.

use anabranch_core::{
    packet::{ConnectionId, Direction, Ecn, FlowId, PacketId},
    rng::Stream,
    units::{Bytes, Duration, Instant, Rate},
};
use anabranch_path::{
    link::{
        Properties, Window,
        served::{Completed, Parts, ServedLink},
        service::{AnyService, Fixed},
    },
    queue::{Config, Init, Item, Outcome},
};
use serde::{Deserialize, Serialize};

/// A queue, the rate of its link, and its arrivals.
#[derive(Debug, Clone, Deserialize)]
pub struct Case {
    /// Same format as a scenario's `queue`.
    pub queue: Config,
    /// Same format as a scenario's `rate`; `None` if the queue shapes.
    pub rate: Option<Rate>,
    pub seed: u64,
    pub arrivals: Vec<Arrival>,
    /// Source and destination of each flow; distinct hosts per flow if empty.
    #[serde(default)]
    pub hosts: Vec<[u32; 2]>,
}

/// Nanoseconds, bytes, flow, ECN field, DSCP.
#[derive(Debug, Clone, Copy, Deserialize)]
pub struct Arrival(pub u64, pub u32, pub u32, pub u8, #[serde(default)] pub u8);

/// The outcome of one packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Decision {
    /// Start of transmission in nanoseconds.
    pub left: Option<u64>,
    /// Time of the drop in nanoseconds.
    pub dropped: Option<u64>,
    pub marked: bool,
}

const NONE: Decision = Decision {
    left: None,
    dropped: None,
    marked: false,
};

fn nanoseconds(at: Instant) -> u64 {
    at.saturating_since(Instant::START).as_picos() / 1_000
}

/// Runs the arrivals through the queue until it is empty.
pub fn decide(case: &Case) -> Vec<Decision> {
    let flows = case.arrivals.iter().map(|a| a.2).max().unwrap_or(0) + 1;
    let names: Vec<String> = (0..flows).map(|flow| format!("flow/{flow}")).collect();
    let own = || (0..flows).map(|flow| [flow, flow]).collect();
    let hosts: Vec<[u32; 2]> = if case.hosts.is_empty() {
        own()
    } else {
        case.hosts.clone()
    };
    let queue = case.queue.build(&Init {
        rate: case.rate,
        flows: &names,
        hosts: &hosts,
    });
    let properties = Properties {
        queue: case.queue.clone(),
        ..Properties::new(case.rate, Duration::ZERO)
    };
    let parts = Parts {
        queue,
        service: AnyService::Fixed(Fixed::new(case.rate)),
        impairments: Vec::new(),
        may_change: false,
        stream: Stream::new(case.seed, "link.path.forward"),
        window: Window::new(Instant::START, Instant::NEVER),
        records_waits: false,
        group: None,
    };
    let mut link = ServedLink::new(properties, parts);
    let mut decisions = vec![NONE; case.arrivals.len()];
    for (number, arrival) in (0_u32..).zip(&case.arrivals) {
        let now = Instant::START + Duration::from_nanos(arrival.0);
        while link.completion() < now {
            let at = link.completion();
            let completed = link.complete(at, &mut Vec::new());
            note(case, &mut link, (at, completed), &mut decisions);
        }
        let item = Item {
            packet: PacketId(number),
            size: arrival.1,
            flow: FlowId(arrival.2),
            connection: ConnectionId(arrival.2),
            arrived: now,
            ecn: [Ecn::NotEct, Ecn::Ect1, Ecn::Ect0, Ecn::Ce][usize::from(arrival.3 & 3)],
            dscp: arrival.4,
            direction: Direction::Forward,
            has_data: true,
            order: 0,
        };
        let completed = link.arrive(now, item, &mut Vec::new());
        note(case, &mut link, (now, completed), &mut decisions);
    }
    while link.completion() < Instant::NEVER {
        let at = link.completion();
        let completed = link.complete(at, &mut Vec::new());
        note(case, &mut link, (at, completed), &mut decisions);
    }
    decisions
}

fn note(
    case: &Case,
    link: &mut ServedLink,
    (now, completed): (Instant, Option<Completed>),
    decisions: &mut [Decision],
) {
    let mut outcomes = Vec::new();
    link.take_outcomes(&mut outcomes);
    for outcome in outcomes {
        match outcome {
            Outcome::Dropped(item) => {
                decisions[item.packet.0 as usize].dropped = Some(nanoseconds(now));
            }
            Outcome::Marked(item) => decisions[item.packet.0 as usize].marked = true,
            Outcome::Moved(_) | Outcome::Waited { .. } => {}
        }
    }
    if let Some(Completed::Exit(exit)) = completed {
        let number = exit.packet.0 as usize;
        let size = Bytes::new(u64::from(case.arrivals[number].1));
        let takes = case.rate.map_or(Duration::ZERO, |rate| size / rate);
        let took = exit.at.saturating_since(Instant::START + takes);
        decisions[number].left = Some(took.as_picos() / 1_000);
    }
}
