//! A sender with one control and a bottleneck, for the tests of model-based controls. By default
//! the queue has no limit and nothing is lost. A loss is detected when a later packet arrives, and
//! the lost packet is not retransmitted.

use std::collections::VecDeque;

use anabranch_congestion::{
    Ack, Config, Congestion, CongestionControl, Control, Idle, IdleRestart, Init, Recovered, Sent,
    Signal,
    rate::{Delivery, RateSampler},
};
use anabranch_core::units::{Bytes, Duration, Instant, Rate};

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
    /// Packets delivered, the largest queue and the smallest amount in flight since the last call
    /// of `run`.
    pub delivered: u64,
    pub max_queue: u64,
    pub min_in_flight: u64,
    /// Capacity of the queue in packets, the one on the wire included.
    pub limit: u64,
    /// Of every `.0` packets the path loses `.1` in a row.
    pub loses: Option<(u64, u64)>,
    /// Losses that are not yet detected, and the number detected since the last call of `run`.
    missing: VecDeque<u64>,
    pub lost: u64,
    /// Recovery ends when this packet arrives.
    recover: Option<u64>,
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
            limit: u64::MAX,
            loses: None,
            missing: VecDeque::new(),
            lost: 0,
            recover: None,
        }
    }

    pub fn in_flight(&self) -> u64 {
        (self.flying.len() + self.missing.len()) as u64
    }

    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a number of packets"
    )]
    fn send(&mut self) {
        let pace = self.control.pacing_rate().map(|rate| PACKET / rate);
        self.sampler.on_sent(
            self.sent,
            self.now,
            self.in_flight() == 0,
            PACKET.get() * (self.in_flight() + 1),
        );
        let leaves = self.free_at.max(self.now) + PACKET / self.rate;
        let queued = (leaves - self.now).as_secs_f64() / (PACKET / self.rate).as_secs_f64();
        let unlucky = self
            .loses
            .is_some_and(|(period, run)| self.sent % period < run);
        if queued as u64 > self.limit || unlucky {
            self.missing.push_back(self.sent);
        } else {
            self.free_at = leaves;
            self.max_queue = self.max_queue.max(queued as u64);
            self.flying.push_back(Flying {
                number: self.sent,
                sent_at: self.now,
                arrives: leaves + self.delay,
            });
        }
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
        let before = self.lost;
        self.find_losses(packet.number);
        let in_recovery = self.recover.is_some();
        if self.recover.is_some_and(|end| packet.number >= end) {
            self.recover = None;
            self.control.on_recovered(&Recovered {
                now: self.now,
                in_flight: PACKET * self.in_flight(),
                cwnd_limit: None,
            });
        }
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
        if packet.number >= self.round_end {
            self.round += 1;
            self.round_end = self.sent;
        }
        let rate = self.sampler.on_delivered(&Delivery {
            now: self.now,
            octets: PACKET.get(),
            latest: Some(packet.number),
            gone: packet.number + 1,
            min_rtt: self.min_rtt,
        });
        self.control.on_ack(&Ack {
            now: self.now,
            acked: PACKET,
            sacked: Bytes::ZERO,
            delivered: PACKET,
            lost: PACKET * (self.lost - before),
            ce_marked: Bytes::ZERO,
            prior_in_flight: PACKET * prior,
            in_flight: PACKET * self.in_flight(),
            rtt: Some(rtt),
            rtt_by_timestamp: None,
            srtt: self.srtt,
            min_rtt: self.min_rtt,
            rate,
            round: self.round,
            cwnd_limited: true,
            app_limited: false,
            in_recovery,
        });
    }

    /// Marks missing packets sent before packet `number` lost.
    fn find_losses(&mut self, number: u64) {
        while self.missing.front().is_some_and(|lost| *lost < number) {
            let Some(lost) = self.missing.pop_front() else {
                return;
            };
            self.lost += 1;
            if self.recover.is_none() {
                self.recover = Some(self.sent);
                self.control.on_congestion(&Congestion {
                    now: self.now,
                    signal: Signal::Loss,
                    in_flight: PACKET * self.in_flight(),
                });
            }
            let told = self.sampler.on_lost(self.now, (lost, PACKET.get()), true);
            if self.control.wants().losses {
                self.control.on_lost(&told.expect("it was sent"));
            }
        }
    }

    /// Runs for `time`, with the counters reset.
    pub fn run(&mut self, time: Duration) {
        self.delivered = 0;
        self.lost = 0;
        self.max_queue = 0;
        self.min_in_flight = u64::MAX;
        let end = self.now + time;
        loop {
            if self.flying.is_empty() {
                self.find_losses(self.sent);
            }
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

    /// Waits until everything in flight has arrived, then sends nothing for `time`.
    pub fn idle(&mut self, time: Duration) {
        while let Some(packet) = self.flying.front() {
            self.now = packet.arrives;
            self.sampler.on_app_limited(PACKET.get() * self.in_flight());
            self.acknowledge();
        }
        self.find_losses(self.sent);
        self.now = self.now + time;
        self.control.on_idle(&Idle {
            now: self.now,
            idle: time,
            rto: Duration::from_secs(1),
            rule: IdleRestart::Rfc5681,
        });
    }

    /// Share of the bottleneck's capacity that was used in `time`.
    pub fn share(&self, time: Duration) -> f64 {
        (PACKET * self.delivered).get() as f64 / (self.rate * time).get() as f64
    }

    pub fn state(&self, name: &str) -> f64 {
        let state = self.control.state();
        let found = state.iter().find(|(n, _)| *n == name);
        found.expect("a state of that name").1
    }
}
