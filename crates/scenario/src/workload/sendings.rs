//! The datagrams of a UDP sender without a fixed pace: drawn from a stream or read from a
//! recording, so that both ends of a flow can compute them.

use std::sync::Arc;

use anabranch_core::{
    rng::Stream,
    units::{Duration, Instant, Rate},
};

use super::{
    Pace,
    on_off::Spans,
    profile::Level,
    replay::{Recording, at_speed},
};

/// One datagram.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sending {
    /// The time at which it is sent.
    pub at: Instant,
    /// Bytes of its payload.
    pub payload: u32,
}

/// The datagrams of a flow, in order of time.
#[derive(Debug, Clone)]
pub enum Sendings {
    /// A Poisson process.
    Poisson(Poisson),
    /// A variable pace.
    Varying(Varying),
    /// On and off.
    OnOff(OnOff),
    /// A recording.
    Replay(Replay),
}

/// A Poisson process of datagrams.
#[derive(Debug, Clone)]
pub struct Poisson {
    /// The time of the last datagram; initially the start of the flow.
    pub now: Instant,
    /// Mean number of datagrams per second.
    pub rate: f64,
    /// Bytes of each payload.
    pub payload: u32,
    /// The variation of the rate.
    pub level: Option<Level>,
    /// The random stream of the times.
    pub stream: Stream,
    /// The number of datagrams drawn.
    pub count: u64,
}

/// A variable pace: a datagram is sent whenever the integral of the rate reaches its payload.
#[derive(Debug, Clone)]
pub struct Varying {
    /// The time of the last datagram; initially the start of the flow.
    pub now: Instant,
    /// Mean bytes per second.
    pub rate: f64,
    /// Bytes of each payload.
    pub payload: u32,
    /// The variation of the rate.
    pub level: Level,
    /// The share of the first datagram that has accumulated at the start, 0 to 1. It keeps flows
    /// that start at one time from sending at one time.
    pub phase: f64,
}

/// A source that alternates between on and off.
#[derive(Debug, Clone)]
pub struct OnOff {
    pace: Pace,
    on: Spans,
    off: Spans,
    stream: Stream,
    /// The number of on periods that have begun.
    count: u64,
    /// Start and end of the current on period.
    period: (Instant, Instant),
    /// The number of datagrams in this on period.
    sent: u64,
}

/// A recording, replayed at some speed.
#[derive(Debug, Clone)]
pub struct Replay {
    /// The recording.
    pub recording: Arc<Recording>,
    /// The time of its first packet.
    pub start: Instant,
    /// The speed relative to the recording.
    pub factor: f64,
    /// Whether it begins again at its end.
    pub repeat: bool,
    /// Bytes of the flow's headers.
    pub headers: u32,
    /// The index of the next packet.
    pub index: usize,
}

impl OnOff {
    /// Starts at the beginning of an on period with the probability of its share of the time,
    /// otherwise at the beginning of an off period.
    #[must_use]
    pub fn new(pace: Pace, on: Spans, off: Spans, stream: Stream, start: Instant) -> Self {
        let share = on.mean().as_secs_f64() / (on.mean().as_secs_f64() + off.mean().as_secs_f64());
        let mut draw = stream.at(0);
        let pause = if draw.chance(share) {
            Duration::ZERO
        } else {
            off.draw(&mut draw)
        };
        let begin = start.saturating_add(pause);
        let end = begin.saturating_add(on.draw(&mut draw));
        Self {
            pace,
            on,
            off,
            stream,
            count: 1,
            period: (begin, end),
            sent: 0,
        }
    }

    fn next(&mut self) -> Sending {
        let mut at = self.period.0.saturating_add(self.pace.after(self.sent));
        if self.sent > 0 && at >= self.period.1 {
            let mut draw = self.stream.at(self.count);
            self.count += 1;
            self.sent = 0;
            at = self.period.1.saturating_add(self.off.draw(&mut draw));
            self.period = (at, at.saturating_add(self.on.draw(&mut draw)));
        }
        let payload = self.pace.payload(self.sent);
        self.sent += 1;
        Sending { at, payload }
    }
}

impl Replay {
    fn next(&mut self) -> Option<Sending> {
        let packets = self.recording.packets();
        if self.index == packets.len() {
            if !self.repeat {
                return None;
            }
            let gaps = u64::try_from(packets.len().saturating_sub(1))
                .unwrap_or(1)
                .max(1);
            let span = self.recording.span();
            let round = span + Duration::from_picos(span.as_picos() / gaps);
            self.start = self.start.saturating_add(at_speed(round, self.factor));
            self.index = 0;
        }
        let packet = packets[self.index];
        self.index += 1;
        Some(Sending {
            at: self
                .start
                .saturating_add(at_speed(packet.time, self.factor)),
            payload: packet.size.saturating_sub(self.headers),
        })
    }
}

impl Iterator for Sendings {
    type Item = Sending;

    fn next(&mut self) -> Option<Sending> {
        let sending = match self {
            Self::Poisson(poisson) => poisson.next(),
            Self::Varying(varying) => varying.next(),
            Self::OnOff(on_off) => on_off.next(),
            Self::Replay(replay) => replay.next()?,
        };
        (sending.at < Instant::NEVER).then_some(sending)
    }
}

impl Poisson {
    fn next(&mut self) -> Sending {
        let mut draw = self.stream.at(self.count);
        self.count += 1;
        self.now = if let Some(level) = &mut self.level {
            level.next_point(self.now, self.rate, &mut draw)
        } else {
            let pause = draw.exponential(1.0 / self.rate);
            self.now.saturating_add(Duration::from_secs_f64(pause))
        };
        Sending {
            at: self.now,
            payload: self.payload,
        }
    }
}

impl Varying {
    /// A flow with the mean `rate` from `start` on.
    #[must_use]
    pub fn new(rate: Rate, payload: u32, level: Level, phase: f64, start: Instant) -> Self {
        Self {
            now: start,
            rate: rate.bits_per_s() as f64 / 8.0,
            payload,
            level,
            phase,
        }
    }
    fn next(&mut self) -> Sending {
        let amount = f64::from(self.payload) * (1.0 - std::mem::take(&mut self.phase));
        self.now = self.level.when_added_up(self.now, self.rate, amount);
        Sending {
            at: self.now,
            payload: self.payload,
        }
    }
}
