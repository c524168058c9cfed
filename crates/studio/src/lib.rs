//! The engine for a page in a browser: runs of scenarios, answered in messages.
//!
//! A request is JSON. An answer is a message of JSON and columns ([`message`]). [`Studio`] keeps the
//! last run, so that a page asks for the tables that it shows. Compiled to WebAssembly the crate
//! exports four functions (`abi`); the only import receives the progress of a run.
//!
//! A scenario in a page is untrusted: it may come with a link. It reads no files and is limited as
//! `anabranch run --untrusted` is.

#[cfg(target_arch = "wasm32")]
mod abi;
pub mod message;
mod request;

use anabranch::{
    Extensions, Finished, Length, Progress, RunError, Scenario, Simulation,
    scenario::{Error, ResolvedText},
    units::Duration,
};
use anabranch_results::Packets;
use message::Message;
use request::{Request, Run, Tables};
use serde::Serialize;
use serde_json::{Value, json};

/// Samples of a run, if the request does not say how many.
const SAMPLES: u64 = 1000;

/// Most samples of a run in all flows and directions of links: some 100 MB.
const MOST_SAMPLES: u64 = 1_000_000;

/// Receives the completed share of a run, 0 to 1, and answers whether the run continues.
pub type Report<'a> = &'a mut dyn FnMut(f64) -> Progress;

/// The engine, and the last run.
#[derive(Default)]
pub struct Studio {
    last: Option<Last>,
}

struct Last {
    run: Finished<Length>,
    packets: Packets,
}

/// What is wrong with a request.
#[derive(Debug, Serialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
enum Problem {
    /// The scenario has errors.
    Scenario { text: String, errors: Vec<Part> },
    /// The run was stopped.
    Stopped,
    /// The request cannot be served.
    Request { text: String },
}

/// One error of a scenario.
#[derive(Debug, Serialize)]
struct Part {
    line: Option<u32>,
    column: Option<u32>,
    message: String,
    help: Vec<String>,
}

impl Problem {
    fn request(text: impl Into<String>) -> Self {
        Self::Request { text: text.into() }
    }
}

impl From<Error> for Problem {
    fn from(error: Error) -> Self {
        let part = |error: &Error| Part {
            line: error.line,
            column: error.column,
            message: error.message.clone(),
            help: error.help.clone(),
        };
        Self::Scenario {
            text: error.to_string(),
            errors: std::iter::once(&error)
                .chain(error.more())
                .map(part)
                .collect(),
        }
    }
}

impl From<RunError> for Problem {
    fn from(error: RunError) -> Self {
        match error {
            RunError::Stopped => Self::Stopped,
            other => Self::request(other.to_string()),
        }
    }
}

/// A scenario as the engine reads it.
#[derive(Serialize)]
struct Described<'a> {
    title: &'a str,
    seed: u64,
    duration_s: f64,
    warmup_s: f64,
    flows: Vec<&'a str>,
    links: Vec<&'a str>,
    resolved_scenario: &'a ResolvedText,
}

impl Studio {
    /// Answers a request.
    pub fn answer(&mut self, request: &[u8], report: Report<'_>) -> Vec<u8> {
        let answered = serde_json::from_slice(request)
            .map_err(|error| Problem::request(format!("the request is not valid: {error}")))
            .and_then(|request| match request {
                Request::Run(run) => self.run(&run, report),
                Request::Tables(tables) => self.tables(&tables),
                Request::Registry => registry(),
            });
        let message =
            answered.unwrap_or_else(|problem| Message::of(&json!({ "problem": problem })));
        message.into_octets()
    }

    fn run(&mut self, order: &Run, report: Report<'_>) -> Result<Message, Problem> {
        // The memory of the last run is free before the next begins.
        self.last = None;
        let extensions = Extensions::default()
            .files(|_, _| Err("the studio reads no files".to_owned()))
            .untrusted(true);
        let mut scenario = Scenario::parse(&order.scenario, "scenario.toml", &extensions)?;
        for set in &order.set {
            scenario.set(set)?;
        }
        let resolved = scenario.resolve(order.seed)?;
        let described = serde_json::to_value(Described {
            title: &resolved.title,
            seed: resolved.seed,
            duration_s: resolved.duration.as_secs_f64(),
            warmup_s: resolved.warmup.as_secs_f64(),
            flows: resolved.flows.iter().map(|flow| &*flow.name).collect(),
            links: resolved.links.iter().map(|link| &*link.name).collect(),
            resolved_scenario: &resolved.json,
        })
        .map_err(|error| Problem::request(error.to_string()))?;
        let each = (resolved.flows.len() + 2 * resolved.links.len()) as u64;
        let samples = order.samples.unwrap_or(SAMPLES).max(1);
        let samples = samples.min(MOST_SAMPLES / each.max(1)).max(1);
        let every = Duration::from_picos((resolved.duration.as_picos() / samples).max(1));
        let mut run = Simulation::<Length>::new(&resolved)
            .digest(order.digest)
            .samples(Some(every))
            .packet_log(order.packets)
            .run_with(report)?;
        let log = run.network.log_mut().map(std::mem::take);
        let packets = log.as_ref().map(Packets::of).unwrap_or_default();
        let head = json!({
            "scenario": described,
            "sample_s": every.as_secs_f64(),
            "summary": run.summary,
            "left_out_packets": packets.left_out,
        });
        let last = self.last.insert(Last { run, packets });
        last.message(head, &order.tables)
    }

    fn tables(&self, order: &Tables) -> Result<Message, Problem> {
        let last = self.last.as_ref();
        let last = last.ok_or_else(|| Problem::request("there is no run"))?;
        last.message(json!({}), &order.tables)
    }
}

impl Last {
    fn message(&self, head: Value, names: &[String]) -> Result<Message, Problem> {
        let mut message = Message::of(&head);
        for name in names {
            let table = anabranch_results::build(&self.run, &self.packets, name);
            let table = table.map_err(|error| Problem::request(error.to_string()))?;
            message.table(name, &table);
        }
        Ok(message)
    }
}

/// Every component with its sources and parameters.
fn registry() -> Result<Message, Problem> {
    let entries = serde_json::to_value(anabranch::catalog());
    let entries = entries.map_err(|error| Problem::request(error.to_string()))?;
    Ok(Message::of(&json!({ "registry": entries })))
}
