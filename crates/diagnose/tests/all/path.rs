//! The model of a path with known rate and delay.

use anabranch_diagnose::path::{LossKind, Model, Seen};

use crate::make::{MSS, Script};

/// Transmission time of a segment at the bottleneck in milliseconds, and its octets.
const SERVICE: u64 = 2;
const PACKET: f64 = 1_040.0;
/// Round trip from the capture point to each end, in milliseconds.
const WAY: u64 = 10;
/// The rate of the bottleneck in Mbit/s.
const RATE: f64 = PACKET * 8e-3 / SERVICE as f64;

/// A sender with a fixed window of segments over one queue after the capture point. B acknowledges
/// each segment.
fn captured(window: usize, segments: u32) -> Script {
    let mut script = Script::opened();
    let mut events: Vec<(u64, bool, u32)> = Vec::new();
    let mut acks: Vec<u64> = Vec::new();
    let mut free = 0;
    for n in 0..segments {
        let released = acks.len().checked_sub(window).map(|at| acks[at]);
        let sent = released.map_or(20, |ack| ack + WAY);
        free = free.max(sent) + SERVICE;
        acks.push(free + WAY);
        events.push((sent, true, n * MSS));
        events.push((free + WAY, false, (n + 1) * MSS));
    }
    events.sort_by_key(|(time, is_data, seq)| (*time, !is_data, *seq));
    for (time, is_data, seq) in events {
        if is_data {
            script.data(time, seq, MSS);
        } else {
            script.ack(time, seq, &[]);
        }
    }
    script
}

fn model(script: &Script) -> Model {
    let model = script.connection().path.model;
    *model.expect("enough data")
}

fn holds(of: &anabranch_diagnose::path::Estimate, truth: f64) -> bool {
    of.low.is_none_or(|low| low <= truth) && of.high.is_none_or(|high| truth <= high)
}

#[test]
fn a_busy_bottleneck_shows_its_rate() {
    let model = model(&captured(30, 500));
    assert_eq!(model.rate_mbit_s.seen, Seen::Measured);
    assert_eq!(model.bottleneck, "behind the capture point");
    let rate = model.rate_mbit_s.value.expect("measured");
    assert!((rate / RATE - 1.0).abs() < 1e-3, "{rate}");
    assert!(holds(&model.rate_mbit_s, RATE), "{:?}", model.rate_mbit_s);
    assert!(model.rate_trace.is_empty());
}

#[test]
fn a_standing_queue_does_not_lengthen_the_base_round_trip() {
    let base = model(&captured(60, 500)).base_rtt_ms;
    let value = base.value.expect("measured");
    // The handshake's two packets take up to 0.3 ms on the links.
    assert!((19.7..=20.0).contains(&value), "{base:?}");
}

#[test]
fn a_path_below_capacity_has_only_bounds() {
    let model = model(&captured(1, 300));
    assert_eq!(model.rate_mbit_s.seen, Seen::AtLeast);
    assert!(holds(&model.rate_mbit_s, RATE), "{:?}", model.rate_mbit_s);
    assert_eq!(model.bottleneck, "not seen");
}

#[test]
fn a_buffer_without_loss_has_a_lower_bound() {
    let model = model(&captured(30, 500));
    assert_eq!(model.buffer_bytes.seen, Seen::AtLeast);
    // All of the first 30 segments wait, except the one in transmission.
    let waiting = 29.0 * PACKET;
    assert!(holds(&model.buffer_bytes, waiting * 1.1));
    assert!(
        model
            .buffer_bytes
            .value
            .is_some_and(|bytes| bytes > waiting * 0.8)
    );
    assert_eq!(
        (model.loss.kind, model.loss.rate.seen),
        (LossKind::None, Seen::AtMost)
    );
}

#[test]
fn a_change_of_the_rate_is_a_trace() {
    let mut script = captured(30, 2_000);
    let middle = 1_000_000_000 + 2_100_000;
    for packet in &mut script.packets {
        // The clock runs at half the speed from the middle on.
        packet.micros += packet.micros.saturating_sub(middle);
    }
    let trace = model(&script).rate_trace;
    let (first, last) = (
        trace.first().expect("a trace"),
        trace.last().expect("a trace"),
    );
    assert!((first[1] / RATE - 1.0).abs() < 0.02, "{first:?}");
    assert!((last[1] / RATE - 0.5).abs() < 0.02, "{last:?}");
}

#[test]
fn late_originals_are_reordered_not_lost() {
    let mut script = captured(30, 500);
    let late: Vec<usize> = (100..script.packets.len()).step_by(100).collect();
    for at in late {
        // Two segments of A are swapped after the capture point: B reports the gap, then fills it.
        let acks: Vec<usize> = (at..script.packets.len())
            .filter(|k| script.packets[*k].from == 1)
            .take(2)
            .collect();
        let [first, second] = acks[..] else { continue };
        let (gap, end) = (script.packets[first].ack, script.packets[second].ack);
        script.packets[first].ack = gap.wrapping_sub(MSS);
        let mut options = vec![5, 10];
        options.extend(gap.to_be_bytes());
        options.extend(end.to_be_bytes());
        script.packets[first].options = options;
    }
    let found = model(&script);
    assert_eq!(found.loss.kind, LossKind::None);
    assert!(
        found
            .reordering
            .ratio
            .value
            .is_some_and(|ratio| ratio > 0.005)
    );
    assert_eq!(found.reordering.extent_p95_packets, Some(1));
}

#[test]
fn a_handful_of_segments_has_no_model() {
    let path = captured(5, 5).connection().path;
    assert_eq!(path.model, None);
    assert_eq!(
        serde_json::to_value(&path).expect("JSON"),
        serde_json::json!({})
    );
}

/// A sender over a token bucket that opens its window by a segment per round and halves it at a
/// loss.
fn policed(rate: f64, burst: f64, rounds: u64) -> Script {
    let mut script = Script::opened();
    let (mut tokens, mut refilled) = (burst, 0);
    let (mut window, mut next, mut acked) = (10_u64, 0, 0);
    let mut missing: Option<u32> = None;
    for round in 0..rounds {
        let start = 30 + 40 * round;
        let mut passes = |time: u64| {
            tokens = (tokens + rate * (time - refilled) as f64).min(burst);
            refilled = time;
            let does = tokens >= PACKET;
            tokens -= if does { PACKET } else { 0.0 };
            does
        };
        let mut events = Vec::new();
        if let Some(lost) = missing.take() {
            passes(start);
            script.data(start, lost, MSS);
            acked = next;
            events.push((start + WAY, acked, None));
        }
        let mut has_lost = false;
        for k in 0..window {
            let time = start + 1 + k * 38 / window;
            let does = passes(time);
            if !does && has_lost {
                continue;
            }
            events.push((time, next, Some(does)));
            next += MSS;
            if !does {
                has_lost = true;
                missing = Some(next - MSS);
            }
        }
        let mut later: Vec<(u64, u32)> = Vec::new();
        for (time, seq, does) in events {
            later.retain(|(due, upto)| {
                let is_due = *due <= time;
                if is_due {
                    acknowledge(&mut script, *due, *upto, missing, &mut acked);
                }
                !is_due
            });
            match does {
                Some(does) => {
                    script.data(time, seq, MSS);
                    if does {
                        later.push((time + WAY, seq + MSS));
                    }
                }
                None => later.push((time, seq)),
            }
        }
        for (due, upto) in later {
            acknowledge(&mut script, due, upto, missing, &mut acked);
        }
        window = if has_lost {
            (window / 2).max(2)
        } else {
            window + 1
        };
    }
    script
}

fn acknowledge(script: &mut Script, time: u64, upto: u32, missing: Option<u32>, acked: &mut u32) {
    match missing {
        Some(lost) if upto > lost => {
            script.ack(time, lost.max(*acked), &[(lost + MSS, upto)]);
        }
        _ => {
            *acked = upto.max(*acked);
            script.ack(time, *acked, &[]);
        }
    }
}

#[test]
fn losses_of_an_empty_bucket_show_a_policer() {
    // 400 octets per millisecond are 3.2 Mbit/s.
    let policer = model(&policed(400.0, 90_000.0, 800)).policer;
    let policer = policer.expect("a policer");
    let rate = policer.rate_mbit_s.value.expect("measured");
    assert!((rate / 3.2 - 1.0).abs() < 0.02, "{policer:?}");
    let burst = policer.burst_bytes.value.expect("measured");
    assert!((burst / 90_000.0 - 1.0).abs() < 0.1, "{policer:?}");
}

#[test]
fn a_queue_is_not_a_policer() {
    assert_eq!(model(&captured(30, 500)).policer, None);
}
