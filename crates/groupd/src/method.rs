//! The arguments of `control`: the method, and its parameters as in scenario files.

use std::{path::PathBuf, time::Duration};

use anabranch_core::units;
use anabranch_path::group::{
    control::{Config, ControlParams, peak_percentile},
    energy::PowerModel,
};
use clap::Args;
use serde_json::{Map, Value};

use crate::{core::members::Limits, daemon::Options, state};

/// The study's controller, with an interval that suits the driver's negotiation.
const STUDY: &str = "dynamic-lacp";
const STUDY_INTERVAL: &str = "5 s";
/// Methods, in the order of the reference.
const METHODS: [&str; 6] = [
    STUDY,
    "peak-percentile",
    "moving-average",
    "ewma-hysteresis",
    "peak-forecast",
    "always-on",
];
/// Shortest interval of readings.
const SHORTEST: Duration = Duration::from_millis(1);
/// Interval of readings for controllers without bins, as a part of their interval.
const PARTS: u32 = 10;

/// Arguments of `control`.
#[derive(Args)]
pub struct Control {
    /// The bond
    pub bond: String,
    /// The controller: dynamic-lacp, peak-percentile, moving-average, ewma-hysteresis, peak-forecast or always-on
    #[arg(long, value_name = "NAME", default_value = STUDY)]
    pub method: String,
    /// A parameter of the controller, as in a scenario: --set "percentile=90"; may be repeated
    #[arg(long, value_name = "KEY=VALUE")]
    pub set: Vec<String>,
    /// Rate of one member, if it is not the speed that the driver reports: "100 Mbit/s"
    #[arg(long, value_name = "RATE")]
    pub rate: Option<String>,
    /// Fewest members that stay on
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub least: usize,
    /// Time from setting a member up to its first frame; LACP waits for 2 s of it
    #[arg(long, value_name = "TIME", default_value = "2500 ms")]
    pub lead: String,
    /// Time without a frame after which a member is drained
    #[arg(long, value_name = "TIME", default_value = "20 ms")]
    pub guard: String,
    /// Power of a port in a state: --power "sleeping=50 mW"; active, idle, sleeping, waking; may be repeated
    #[arg(long, value_name = "STATE=POWER")]
    pub power: Vec<String>,
    /// Interval of the log lines with energy
    #[arg(long, value_name = "TIME", default_value = "15 min")]
    pub report: String,
    /// The directory of the daemon's state
    #[arg(long, value_name = "DIR", default_value = state::DIRECTORY)]
    pub state: PathBuf,
}

impl Control {
    /// The daemon's options.
    ///
    /// # Errors
    /// An argument is wrong.
    pub fn options(self) -> Result<Options, String> {
        let lead = time("--lead", &self.lead)?;
        let control = self.config()?;
        let interval = control.interval().map(as_time);
        if let Some(interval) = interval.filter(|interval| *interval < lead) {
            return Err(format!(
                "the interval of {}, {interval:?}, is shorter than --lead, {lead:?}: a member would return after \
                 the next decision; --set \"interval=5 s\"",
                self.method
            ));
        }
        if self.least == 0 {
            return Err("--least is 0; expected 1 or more".to_owned());
        }
        let rate = self.rate.as_deref().map(|text| {
            let rate = text.parse::<units::Rate>();
            rate.map_err(|error| format!("--rate: {error}"))
        });
        Ok(Options {
            sample: sample(&control),
            rate: rate.transpose()?,
            lead,
            limits: Limits {
                least: self.least,
                guard: time("--guard", &self.guard)?,
                ..Limits::default()
            },
            power: power(&self.power)?,
            report: time("--report", &self.report)?.max(Duration::from_secs(1)),
            directory: self.state,
            bond: self.bond,
            control,
        })
    }

    fn config(&self) -> Result<Config, String> {
        if !METHODS.contains(&self.method.as_str()) {
            let why = match self.method.as_str() {
                "oracle" => "oracle needs the arrivals of the future".to_owned(),
                "lpi" => {
                    "lpi is a property of the ports: type `ethtool --set-eee DEV eee on`".to_owned()
                }
                name => format!("there is no method {name}"),
            };
            return Err(format!("{why}; methods: {}", METHODS.join(", ")));
        }
        let mut parameters = pairs("--set", &self.set)?;
        let name = if self.method == STUDY {
            let interval = || Value::from(STUDY_INTERVAL);
            parameters.entry("interval").or_insert_with(interval);
            peak_percentile::META.name
        } else {
            &self.method
        };
        let tagged = Value::from_iter([(name, Value::Object(parameters))]);
        let config: Config = serde_json::from_value(tagged)
            .map_err(|error| format!("--set of {}: {error}", self.method))?;
        config.check().map_err(|wrong| {
            format!(
                "--set of {}: {}; expected {}",
                self.method, wrong.message, wrong.expected
            )
        })?;
        Ok(config)
    }
}

/// Pairs of a key and a value, as in TOML: a number, `true`, `false` or a text.
fn pairs(option: &str, texts: &[String]) -> Result<Map<String, Value>, String> {
    let pair = |text: &String| {
        let (key, value) = text
            .split_once('=')
            .ok_or_else(|| format!("{option} {text}: expected KEY=VALUE"))?;
        let value = value.trim().trim_matches('"');
        let value = serde_json::from_str(value).unwrap_or_else(|_| Value::from(value));
        Ok((key.trim().to_owned(), value))
    };
    texts.iter().map(pair).collect()
}

fn power(texts: &[String]) -> Result<PowerModel, String> {
    let states = Value::Object(pairs("--power", texts)?);
    serde_json::from_value(states).map_err(|error| format!("--power: {error}"))
}

fn time(option: &str, text: &str) -> Result<Duration, String> {
    let time = text.parse::<units::Duration>();
    time.map(as_time)
        .map_err(|error| format!("{option}: {error}"))
}

fn as_time(time: units::Duration) -> Duration {
    Duration::from_nanos(time.as_nanos())
}

/// Interval of the readings: the controller's bin.
fn sample(control: &Config) -> Duration {
    let bin = match control {
        Config::PeakPercentile(params) => as_time(params.bin.get()),
        Config::PeakForecast(params) => as_time(params.bin.get()),
        Config::MovingAverage(params) => part(params.interval()),
        Config::EwmaHysteresis(params) => part(params.interval()),
        _ => Duration::from_millis(100),
    };
    bin.clamp(SHORTEST, Duration::from_millis(100))
}

fn part(interval: Option<units::Duration>) -> Duration {
    interval.map(as_time).unwrap_or_default() / PARTS
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use clap::Parser;

    use super::{Control, Options};

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        control: Control,
    }

    fn options(arguments: &[&str]) -> Result<Options, String> {
        let line = ["test", "bond0"].iter().chain(arguments);
        Line::try_parse_from(line)
            .expect("the arguments parse")
            .control
            .options()
    }

    #[test]
    fn the_studys_method_has_an_interval_above_the_lead() {
        let made = options(&[]).expect("the defaults are valid");
        assert_eq!(made.control.name(), "peak-percentile");
        assert_eq!(made.sample, Duration::from_millis(1));
        assert!(
            options(&["--method", "peak-percentile"])
                .unwrap_err()
                .contains("shorter than --lead")
        );
        assert!(options(&["--set", "interval=1 s", "--lead", "100 ms"]).is_ok());
    }

    #[test]
    fn wrong_arguments_name_the_valid_ones() {
        let unknown = options(&["--method", "peak"]).unwrap_err();
        assert!(unknown.contains("methods: dynamic-lacp"), "{unknown}");
        assert!(
            options(&["--method", "oracle"])
                .unwrap_err()
                .contains("future")
        );
        let key = options(&["--set", "bins=1 ms"]).unwrap_err();
        assert!(key.contains("`bin`"), "{key}");
        let value = options(&["--set", "percentile=101"]).unwrap_err();
        assert!(value.contains("101"), "{value}");
        assert!(
            options(&["--set", "percentile"])
                .unwrap_err()
                .contains("KEY=VALUE")
        );
        assert!(
            options(&["--power", "asleep=1 W"])
                .unwrap_err()
                .contains("sleeping")
        );
        assert!(options(&["--rate", "fast"]).unwrap_err().contains("rate"));
        assert!(
            options(&["--least", "0"])
                .unwrap_err()
                .contains("1 or more")
        );
    }

    #[test]
    fn parameters_are_the_keys_of_scenarios() {
        let made = options(&["--set", "section=50 ms", "--set", "percentile=38"]);
        let made = format!("{:?}", made.expect("they are valid").control);
        assert!(made.contains("38"), "{made}");
    }
}
