//! A policer: a token bucket that drops traffic above its rate, without a queue (RFC 2475
//! §2.3.3.3).
//!
//! Losses begin when the bucket is empty. The octets that have passed by then are the bucket's size
//! plus rate × time. The beginnings of losses are therefore on a line although the sender's rate
//! changes; those of random losses are not. A bucket that was full in between has lost tokens, so
//! that the slope of the line is less than the policer's rate.

use serde::Serialize;

use super::{
    Estimate,
    estimate::{Line, student},
    lost::Run,
};
use crate::time::Nanos;

/// Minimum number of beginnings of losses for a line.
const LEAST: usize = 8;
/// Maximum deviation from the line, as a share of the octets that pass between two losses.
const CLOSE: f64 = 0.15;

/// A token bucket.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Policer {
    /// The rate, in octets of IP packets.
    pub rate_mbit_s: Estimate,
    /// The bucket size: octets that pass at once.
    pub burst_bytes: Estimate,
}

/// The beginning of a loss: nanoseconds since the first segment, and octets that have passed.
type Point = (f64, f64);

/// The beginnings of losses that are more than a round trip apart.
fn beginnings(runs: &[Run], first: Nanos, mss: i64, round_trip: Nanos) -> Vec<Point> {
    let mut points = Vec::new();
    let mut latest = Nanos::MIN / 2;
    let mut lost = 0;
    for run in runs {
        if let Some(sent) = run.sent {
            if sent - latest > round_trip {
                points.push(((sent - first) as f64, (run.start - lost) as f64));
            }
            latest = latest.max(sent);
        }
        lost += i64::from(run.segments) * mss;
    }
    points
}

/// Fits a line through the beginnings of losses. `scale` converts octets of data to octets of IP
/// packets.
pub(super) fn find(
    runs: &[Run],
    first: Nanos,
    mss: i64,
    round_trip: Nanos,
    scale: f64,
) -> Option<Policer> {
    let points = beginnings(runs, first, mss, round_trip);
    if points.len() < LEAST {
        return None;
    }
    let Line {
        rate,
        start: burst,
        time,
        squares,
        deviation,
    } = Line::through(&points)?;
    let count = points.len() as f64;
    let span = points.last()?.1 - points.first()?.1;
    if deviation > CLOSE * span / (count - 1.0) || burst <= 0.0 {
        return None;
    }
    let factor = student(count - 2.0);
    let by_rate = factor * deviation / squares.sqrt();
    let by_burst = factor * deviation * (1.0 / count + time * time / squares).sqrt() + mss as f64;
    Some(Policer {
        rate_mbit_s: Estimate::measured(rate, rate - by_rate, rate + by_rate).scaled(scale * 8e3),
        burst_bytes: Estimate::measured(burst, (burst - by_burst).max(0.0), burst + by_burst)
            .scaled(scale),
    })
}
