//! A sender under one control and a bottleneck with a queue without limit: what a control that
//! models the path is tried on.

use std::collections::VecDeque;

use anabranch_core::units::{Bytes, Duration, Instant, Rate};
use anabranch_elements::{
    cc::{Ack, Config, CongestionControl, Control, Idle, IdleRestart, Init, Sent},
    tcp::rate::RateSampler,
};

/// Payload of a packet; there are no headers.
pub const PACKET: Bytes = Bytes::new(1500);

#[derive(Debug)]
struct Flying {
    number: u64,
    sent_at: Instant,
    arrives: Instant,
}

#[derive(Debug)]
pub struct Bottleneck {
    pub control: Control,
    pub now: Instant,
    pub rate: Rate,
    pub delay: Duration,
    sampler: RateSampler,
    flying: VecDeque<Flying>,
    free_at: Instant,
    next_send: Instant,
    sent: u64,
    srtt: Duration,
    min_rtt: Duration,
    /// Round trips completed, and the first packet of the next one.
    round: u64,
    round_end: u64,
    /// What arrived, the largest queue and the smallest amount in flight since the last look.
    pub delivered: u64,
    pub max_queue: u64,
    pub min_in_flight: u64,
}

impl Bottleneck {
    pub fn new(config: &Config, rate: Rate, delay: Duration) -> Self {
        Self {
            control: config.build(&Init::new(PACKET, PACKET * 10)),
            now: Instant::START,
            rate,
            delay,
            sampler: RateSampler::new(),
            flying: VecDeque::new(),
            free_at: Instant::START,
            next_send: Instant::START,
            sent: 0,
            srtt: Duration::ZERO,
            min_rtt: Duration::ZERO,
            round: 0,
            round_end: 0,
            delivered: 0,
            max_queue: 0,
            min_in_flight: u64::MAX,
        }
    }

    fn in_flight(&self) -> u64 {
        self.flying.len() as u64
    }

    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a number of packets"
    )]
    fn send(&mut self) {
        let pace = self.control.pacing_rate().map(|rate| PACKET / rate);
        self.sampler
            .on_sent(self.sent, self.now, self.flying.is_empty());
        let leaves = self.free_at.max(self.now) + PACKET / self.rate;
        self.free_at = leaves;
        let queued = (leaves - self.now).as_secs_f64() / (PACKET / self.rate).as_secs_f64();
        self.max_queue = self.max_queue.max(queued as u64);
        self.flying.push_back(Flying {
            number: self.sent,
            sent_at: self.now,
            arrives: leaves + self.delay,
        });
        self.sent += 1;
        self.next_send = self.next_send.max(self.now) + pace.unwrap_or(Duration::ZERO);
        self.control.on_sent(&Sent {
            now: self.now,
            bytes: PACKET,
            in_flight: PACKET * self.in_flight(),
            retransmission: false,
            srtt: self.srtt,
        });
    }

    fn acknowledge(&mut self) {
        let prior = self.in_flight();
        let Some(packet) = self.flying.pop_front() else {
            return;
        };
        let rtt = self.now - packet.sent_at;
        self.srtt = if self.srtt.is_zero() {
            rtt
        } else {
            self.srtt - self.srtt / 8 + rtt / 8
        };
        if self.min_rtt.is_zero() || rtt < self.min_rtt {
            self.min_rtt = rtt;
        }
        self.delivered += 1;
        self.min_in_flight = self.min_in_flight.min(self.in_flight());
        let number = packet.number;
        if number >= self.round_end {
            self.round += 1;
            self.round_end = self.sent;
        }
        let rate =
            self.sampler
                .on_delivered(self.now, PACKET.get(), (number, number + 1), self.min_rtt);
        self.control.on_ack(&Ack {
            now: self.now,
            acked: PACKET,
            sacked: Bytes::ZERO,
            delivered: PACKET,
            lost: Bytes::ZERO,
            ce_marked: Bytes::ZERO,
            prior_in_flight: PACKET * prior,
            in_flight: PACKET * self.in_flight(),
            rtt: Some(rtt),
            srtt: self.srtt,
            min_rtt: self.min_rtt,
            rate,
            round: self.round,
            cwnd_limited: true,
            app_limited: false,
            in_recovery: false,
        });
    }

    /// Goes on for so long; the counters begin anew.
    pub fn run(&mut self, time: Duration) {
        self.delivered = 0;
        self.max_queue = 0;
        self.min_in_flight = u64::MAX;
        let end = self.now + time;
        loop {
            let may = self.control.cwnd() >= PACKET * (self.in_flight() + 1);
            let send = if may {
                self.next_send.max(self.now)
            } else {
                Instant::NEVER
            };
            let ack = self.flying.front().map_or(Instant::NEVER, |p| p.arrives);
            let next = send.min(ack);
            if next >= end {
                self.now = end;
                return;
            }
            self.now = next;
            if ack <= send {
                self.acknowledge();
            } else {
                self.send();
            }
        }
    }

    /// Everything in flight arrives, then nothing is sent for so long.
    pub fn idle(&mut self, time: Duration) {
        while let Some(packet) = self.flying.front() {
            self.now = packet.arrives;
            self.sampler.on_app_limited(PACKET.get() * self.in_flight());
            self.acknowledge();
        }
        self.now = self.now + time;
        self.control.on_idle(&Idle {
            now: self.now,
            idle: time,
            rto: Duration::from_secs(1),
            rule: IdleRestart::Rfc5681,
        });
    }

    /// Share of the bottleneck that was used in `time`.
    pub fn share(&self, time: Duration) -> f64 {
        (PACKET * self.delivered).get() as f64 / (self.rate * time).get() as f64
    }

    pub fn state(&self, name: &str) -> f64 {
        let state = self.control.state();
        let found = state.iter().find(|(n, _)| *n == name);
        found.expect("a state of that name").1
    }
}
