//! The arguments of `control`: the method, and its parameters as in scenario files.

mod pairs;

use std::{path::PathBuf, time::Duration};

use anabranch_core::units;
use anabranch_document::nearest;
use anabranch_path::group::{
    control::{Config, ControlParams, peak_percentile},
    energy::PowerModel,
};
use clap::Args;

use self::pairs::Pairs;
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
    #[arg(long, value_name = "RATE", allow_hyphen_values = true)]
    pub rate: Option<String>,
    /// Fewest members that stay on
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = count, allow_hyphen_values = true)]
    pub least: usize,
    /// Time from setting a member up to its first frame; LACP waits for 2 s of it
    #[arg(
        long,
        value_name = "TIME",
        default_value = "2500 ms",
        allow_hyphen_values = true
    )]
    pub lead: String,
    /// Time without a frame after which a member is drained
    #[arg(
        long,
        value_name = "TIME",
        default_value = "20 ms",
        allow_hyphen_values = true
    )]
    pub guard: String,
    /// Power of a port in a state: --power "sleeping=50 mW"; active, idle, sleeping, waking; may be repeated
    #[arg(long, value_name = "STATE=POWER")]
    pub power: Vec<String>,
    /// Interval of the log lines with energy
    #[arg(
        long,
        value_name = "TIME",
        default_value = "15 min",
        allow_hyphen_values = true
    )]
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
                 the next decision; --set \"interval={} s\"",
                self.method,
                lead.as_secs_f64().ceil()
            ));
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
            let near = nearest(&self.method, &METHODS)
                .map_or_else(String::new, |near| format!("; did you mean {near}?"));
            return Err(format!("{why}; methods: {}{near}", METHODS.join(", ")));
        }
        let mut parameters = Pairs::new("--set", &self.set)?;
        let name = if self.method == STUDY {
            parameters.or_insert("interval", STUDY_INTERVAL);
            peak_percentile::META.name
        } else {
            &self.method
        };
        let config: Config = parameters.of(name)?.read()?;
        config.check().map_err(|wrong| {
            format!(
                "--set of {}: {}; expected {}",
                self.method, wrong.message, wrong.expected
            )
        })?;
        Ok(config)
    }
}

fn power(texts: &[String]) -> Result<PowerModel, String> {
    Pairs::new("--power", texts)?.read()
}

/// A number of members.
fn count(text: &str) -> Result<usize, String> {
    let count = text.parse().ok().filter(|count| *count > 0);
    count.ok_or_else(|| "expected a number of members, 1 or more".to_owned())
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
        assert!(
            options(&["--lead", "9500 ms"])
                .unwrap_err()
                .ends_with("--set \"interval=10 s\"")
        );
        assert!(options(&["--lead", "9500 ms", "--set", "interval=10 s"]).is_ok());
    }

    #[test]
    fn wrong_arguments_name_the_valid_ones() {
        let unknown = options(&["--method", "peak-percentil"]).unwrap_err();
        assert!(unknown.contains("methods: dynamic-lacp"), "{unknown}");
        assert!(
            unknown.ends_with("did you mean peak-percentile?"),
            "{unknown}"
        );
        assert!(
            options(&["--method", "oracle"])
                .unwrap_err()
                .contains("future")
        );
        for (option, text, expected) in [
            (
                "--set",
                "bins=1 ms",
                "--set bins=1 ms: unknown key `bins`; expected one of `bin`, `section`, `interval`, `percentile`; did you mean `bin`?",
            ),
            (
                "--set",
                "percentile=ninety",
                "--set percentile=ninety: this is the text \"ninety\"; expected a number",
            ),
            (
                "--set",
                "percentile",
                "--set percentile: expected KEY=VALUE",
            ),
            ("--set", "=5", "--set =5: expected KEY=VALUE"),
            (
                "--set",
                "kind=always-on",
                "--set kind: the component is given already; its option is --method",
            ),
            (
                "--power",
                "asleep=1 W",
                "--power asleep=1 W: unknown key `asleep`; expected one of `active`, `idle`, `sleeping`, `waking`",
            ),
        ] {
            assert_eq!(options(&[option, text]).unwrap_err(), expected);
        }
        let twice = options(&["--set", "interval=5 s", "--set", "interval=6 s"]).unwrap_err();
        assert!(twice.contains("given twice"), "{twice}");
        let value = options(&["--set", "percentile=101"]).unwrap_err();
        assert!(value.contains("101"), "{value}");
        let negative = options(&["--lead", "-5 ms"]).unwrap_err();
        assert!(negative.starts_with("--lead: "), "{negative}");
        assert!(options(&["--rate", "fast"]).unwrap_err().contains("rate"));
        for wrong in ["0", "-1", "two"] {
            let line = Line::try_parse_from(["test", "bond0", "--least", wrong]);
            let error = line.map(|_| ()).unwrap_err().to_string();
            assert!(error.contains("1 or more"), "{error}");
        }
    }

    #[test]
    fn parameters_are_the_keys_of_scenarios() {
        let made = options(&["--set", "section=50 ms", "--set", "percentile=38"]);
        let made = format!("{:?}", made.expect("they are valid").control);
        assert!(made.contains("38"), "{made}");
    }
}
