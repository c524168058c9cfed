//! Arrivals, and the decisions of the simulator's queue about them.

use anabranch_core::{
    packet::{ConnectionId, Direction, Ecn, FlowId, PacketId},
    rng::Stream,
    units::{Duration, Instant, Rate},
};
use anabranch_path::{
    link::{
        Properties, Window,
        served::{Parts, ServedLink},
        service::{AnyService, Fixed},
    },
    queue::{Config, Init, Item, Outcome},
};

const FLOWS: u32 = 24;

/// A packet.
#[derive(Debug, Clone, Copy)]
pub struct Arrival {
    pub time_ns: u64,
    pub flow: u32,
    pub size: u32,
    pub ecn: u8,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    Pass,
    Mark,
    Drop,
}

impl Verdict {
    pub fn without_mark(self) -> Self {
        match self {
            Self::Mark => Self::Pass,
            other => other,
        }
    }
}

impl Arrival {
    /// An Ethernet frame with an IPv4 and a UDP header; the flow is the port.
    pub fn frame(&self) -> Vec<u8> {
        let mut frame = vec![0; 14 + self.size as usize];
        frame[12..14].copy_from_slice(&[8, 0]);
        let length = u16::try_from(self.size).expect("a packet's size");
        let flow = u16::try_from(self.flow).expect("few flows");
        let packet = &mut frame[14..];
        packet[..2].copy_from_slice(&[0x45, self.ecn]);
        packet[2..4].copy_from_slice(&length.to_be_bytes());
        packet[8..10].copy_from_slice(&[64, 17]);
        packet[12..20].copy_from_slice(&[10, 0, 0, 1, 10, 0, 0, 2]);
        packet[20..22].copy_from_slice(&(1000 + flow).to_be_bytes());
        packet[22..24].copy_from_slice(&[0, 9]);
        frame
    }

    /// The decision that a program's result means (`TCX_NEXT`, `TCX_DROP`).
    pub fn verdict(&self, result: i32) -> Verdict {
        match result {
            -1 => Verdict::Pass,
            2 => Verdict::Drop,
            other => panic!("result {other} for {self:?}"),
        }
    }
}

/// Packets of flows with very different rates. The load alternates between a third and four thirds
/// of the rate, with pauses in between.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "times and shares are positive and small"
)]
pub fn arrivals(seed: u64, count: usize, rate: Rate) -> Vec<Arrival> {
    let stream = Stream::new(seed, "arrivals");
    let mut time_ns = 0.0;
    let mut sent = Vec::with_capacity(count);
    for index in 0..count as u64 {
        let mut draw = stream.at(index);
        let phase = index / 3_000 % 4;
        let load = [0.33, 0.95, 1.05, 1.33][phase as usize];
        let size = [64, 576, 1500, 1500][(draw.bits() % 4) as usize];
        // Mean size of the four.
        let mean_ns = 910.0 * 8e9 / rate.bits_per_s() as f64 / load;
        time_ns += draw.exponential(mean_ns);
        if index % 3_000 == 0 {
            time_ns += 5e7 * draw.uniform();
        }
        // The share of flow k is about 1/(k + 1).
        let weight = draw.uniform();
        let flow = ((weight * weight * weight * f64::from(FLOWS)) as u32).min(FLOWS - 1);
        sent.push(Arrival {
            time_ns: time_ns as u64,
            flow,
            size,
            ecn: (draw.bits() % 3) as u8,
        });
    }
    sent
}

/// The decisions of a link with this queue.
pub fn simulated(queue: &Config, rate: Rate, stream: Stream, sent: &[Arrival]) -> Vec<Verdict> {
    let rate = Some(rate);
    let init = Init {
        rate,
        flows: &[],
        hosts: &[],
    };
    let properties = Properties {
        queue: queue.clone(),
        ..Properties::new(rate, Duration::ZERO)
    };
    let parts = Parts {
        queue: queue.build(&init),
        service: AnyService::Fixed(Fixed::new(rate)),
        impairments: Vec::new(),
        may_change: false,
        stream,
        window: Window::new(Instant::START, Instant::NEVER),
        records_waits: false,
        group: None,
    };
    let mut link = ServedLink::new(properties, parts);
    let mut verdicts = vec![Verdict::Pass; sent.len()];
    let mut outcomes = Vec::new();
    for (number, arrival) in (0_u32..).zip(sent) {
        let now = Instant::START + Duration::from_nanos(arrival.time_ns);
        // Transmissions end before packets arrive at the same instant.
        while link.completion() <= now {
            let at = link.completion();
            let _ = link.complete(at, &mut Vec::new());
        }
        let item = Item {
            packet: PacketId(number),
            size: arrival.size,
            flow: FlowId(arrival.flow),
            connection: ConnectionId(arrival.flow),
            arrived: now,
            ecn: [Ecn::NotEct, Ecn::Ect1, Ecn::Ect0, Ecn::Ce][usize::from(arrival.ecn & 3)],
            dscp: 0,
            direction: Direction::Forward,
            has_data: true,
            order: 0,
        };
        let _ = link.arrive(now, item, &mut Vec::new());
        link.take_outcomes(&mut outcomes);
        for outcome in outcomes.drain(..) {
            match outcome {
                Outcome::Dropped(item) => verdicts[item.packet.0 as usize] = Verdict::Drop,
                Outcome::Marked(item) => verdicts[item.packet.0 as usize] = Verdict::Mark,
                _ => {}
            }
        }
    }
    verdicts
}
