//! A congestion control of one's own, brought along by a crate outside the project.
//!
//! The control is HighSpeed TCP (RFC 3649): it grows faster and gives up less the larger its window
//! is. [`Extensions::congestion_control`] gives it a name, and the scenario below uses that name as
//! it uses CUBIC's. Both flows meet the same random loss on a path that they do not fill, so each
//! comes to the window that its own response function has for that loss.

use std::{error::Error, sync::Arc};

use anabranch::{
    Extensions, Length, Scenario, Simulation, Value,
    cc::{Ack, Congestion, CongestionControl, Factory, Init, Rto},
    math,
    units::Bytes,
};

/// `Low_P`: the drop rate at which standard TCP has `Low_Window` (RFC 3649 §5).
const LOW_P: f64 = 1e-3;
/// `High_P`.
const HIGH_P: f64 = 1e-7;

/// HighSpeed TCP's parameters (RFC 3649 §5). Windows are in segments.
#[derive(Debug, Clone, Copy)]
struct Params {
    /// `Low_Window`: up to here it is standard TCP.
    low_window: f64,
    /// `High_Window`, which a drop rate of [`HIGH_P`] leaves.
    high_window: f64,
    /// `High_Decrease`: the share given up at `high_window`.
    high_decrease: f64,
}

impl Params {
    /// What stands beside `kind` in the scenario file, over the RFC's values. An error returned
    /// here is shown with the place in the file.
    fn from_file(given: &Value) -> Result<Self, String> {
        let mut params = Self {
            low_window: 38.0,
            high_window: 83_000.0,
            high_decrease: 0.1,
        };
        for (key, value) in given.as_object().into_iter().flatten() {
            let (field, range) = match key.as_str() {
                "low_window" => (&mut params.low_window, 1.0..1e3),
                "high_window" => (&mut params.high_window, 2e3..1e6),
                "high_decrease" => (&mut params.high_decrease, 0.01..0.5),
                _ => return Err(format!("`high-speed` has no parameter `{key}`")),
            };
            *field = value
                .as_f64()
                .filter(|number| range.contains(number))
                .ok_or_else(|| format!("`{key}` is {value}; expected a number in {range:?}"))?;
        }
        Ok(params)
    }

    /// `b(w)`: the share of the window that a loss takes.
    fn decrease(&self, w: f64) -> f64 {
        if w <= self.low_window {
            return 0.5;
        }
        let way = math::ln(w / self.low_window) / math::ln(self.high_window / self.low_window);
        0.5 + (self.high_decrease - 0.5) * way.min(1.0)
    }

    /// `a(w)`: segments gained per round trip.
    fn increase(&self, w: f64) -> f64 {
        if w <= self.low_window {
            return 1.0;
        }
        // The response function is a line on log-log paper; `slope` is the inverse of the RFC's S.
        let slope = math::ln(HIGH_P / LOW_P) / math::ln(self.high_window / self.low_window);
        let p = LOW_P * math::powf(w / self.low_window, slope);
        let b = self.decrease(w);
        w * w * p * 2.0 * b / (2.0 - b)
    }
}

/// HighSpeed TCP at work; both windows are in segments. Differs from the RFC: slow start is not
/// limited (RFC 3742). A reduction that proves spurious is kept.
#[derive(Debug)]
struct HighSpeed {
    params: Params,
    smss: Bytes,
    cwnd: f64,
    /// `None` before the first reduction.
    ssthresh: Option<f64>,
}

impl HighSpeed {
    fn new(params: Params, init: &Init) -> Self {
        Self {
            params,
            smss: init.smss,
            cwnd: init.initial_cwnd.segments(init.smss).max(1.0),
            ssthresh: None,
        }
    }

    fn reduced(&self) -> f64 {
        (self.cwnd * (1.0 - self.params.decrease(self.cwnd))).max(2.0)
    }
}

impl CongestionControl for HighSpeed {
    fn on_ack(&mut self, ack: &Ack) {
        if ack.in_recovery || !ack.cwnd_limited {
            return;
        }
        let acked = ack.acked.segments(self.smss);
        self.cwnd += if self.ssthresh.is_none_or(|ssthresh| self.cwnd < ssthresh) {
            acked.min(1.0) // RFC 5681 §3.1 equation 2
        } else {
            self.params.increase(self.cwnd) * acked / self.cwnd
        };
    }

    fn on_congestion(&mut self, _event: &Congestion) {
        self.cwnd = self.reduced();
        self.ssthresh = Some(self.cwnd);
    }

    fn on_rto(&mut self, event: &Rto) {
        // RFC 5681 §3.1: ssthresh is held when the timer expires again without progress.
        if event.consecutive == 1 {
            self.ssthresh = Some(self.reduced());
        }
        self.cwnd = 1.0;
    }

    fn cwnd(&self) -> Bytes {
        Bytes::from_segments(self.cwnd, self.smss)
    }

    fn ssthresh(&self) -> Option<Bytes> {
        self.ssthresh
            .map(|segments| Bytes::from_segments(segments, self.smss))
    }
}

const SCENARIO: &str = r#"
title = "HighSpeed TCP beside CUBIC under random loss"
duration = "320 s"
warmup = "20 s"

[link.path]
between = ["A", "B"]
rate = "10 Gbit/s"
delay = "10 ms"
forward.impair = [{ kind = "bernoulli-loss", rate = 1e-4 }]

[flow.high-speed]
from = "A"
to = "B"
stack = "rfc"
cc = { kind = "high-speed", high_decrease = 0.2 }

[flow.cubic]
from = "A"
to = "B"
stack = "rfc"
cc = "cubic"
"#;

fn main() -> Result<(), Box<dyn Error>> {
    let extensions = Extensions::default().congestion_control("high-speed", |given| {
        let params = Params::from_file(given)?;
        let make: Factory = Arc::new(move |init| Box::new(HighSpeed::new(params, init)));
        Ok(make)
    });
    let scenario = Scenario::parse(SCENARIO, "high-speed.toml", &extensions)?.resolve(None)?;
    let run = Simulation::<Length>::new(&scenario).run()?;

    let figure =
        |flow: &str, name: &str| run.summary.flows[flow][name].as_f64().unwrap_or(f64::NAN);
    println!("flow        mean cwnd (packets)  goodput (Mbit/s)");
    for flow in ["high-speed", "cubic"] {
        let (cwnd, goodput) = (
            figure(flow, "mean_cwnd_packets"),
            figure(flow, "goodput_mbit_s"),
        );
        println!("{flow:<12}{cwnd:>19.1}{goodput:>18.1}");
    }

    // RFC 3649 §5: w = 0.12 / p^0.835, whatever the decrease is: `a(w)` makes up for it.
    let expected = 0.12 / math::powf(1e-4, 0.835);
    let ratio = figure("high-speed", "mean_cwnd_packets") / expected;
    println!("RFC 3649's response function at this loss: {expected:.1} packets");
    assert!(
        (0.85..1.15).contains(&ratio),
        "off its response function by a factor of {ratio}"
    );
    Ok(())
}
