//! The engine for a page in a browser: runs of scenarios, answered in messages.
//!
//! A request is JSON. An answer is a message of JSON and columns ([`message`]). [`Studio`] keeps the
//! last run, so that a page asks for the tables that it shows. Compiled to WebAssembly the crate
//! exports three functions (`abi`) and imports those of [`page`].
//!
//! A scenario in a page is untrusted: it may come with a link. It reads no files and is limited as
//! `anabranch run --untrusted` is.

#[cfg(target_arch = "wasm32")]
mod abi;
mod capture;
pub mod message;
pub mod page;
mod request;

use anabranch::{
    Extensions, Finished, Length, Progress, Resolved, RunError, Scenario, Simulation, Underway,
    scenario::{Error, ResolvedText},
    units::Duration,
};
use anabranch_columns::Table;
use anabranch_results::{Cursor, Packets};
use message::Message;
use page::{Demand, Page};
use request::{Request, Run, Tables, Wanted};
use serde::Serialize;
use serde_json::{Value, json};

/// Samples of a run, if the request does not say how many.
const SAMPLES: u64 = 1000;

/// Most samples of a run in all flows and directions of links: some 100 MB.
const MOST_SAMPLES: u64 = 1_000_000;

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
    #[expect(clippy::needless_pass_by_value, reason = "errors are mapped by it")]
    fn request(text: impl ToString) -> Self {
        let text = text.to_string();
        Self::Request { text }
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
            other => Self::request(other),
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
    pub fn answer(&mut self, request: &[u8], page: &mut dyn Page) -> Vec<u8> {
        let answered = serde_json::from_slice(request)
            .map_err(|error| Problem::request(format!("the request is not valid: {error}")))
            .and_then(|request| match request {
                Request::Run(run) => self.run(&run, page),
                Request::Resolve(run) => described(&resolve(&run)?)
                    .map(|scenario| Message::of(&json!({ "scenario": scenario }))),
                Request::Tables(tables) => self.tables(&tables),
                Request::Diagnose(order) => capture::diagnosis(&order, page),
            });
        let message =
            answered.unwrap_or_else(|problem| Message::of(&json!({ "problem": problem })));
        message.into_octets()
    }

    fn run(&mut self, order: &Run, page: &mut dyn Page) -> Result<Message, Problem> {
        // The memory of the last run is free before the next begins.
        self.last = None;
        let resolved = resolve(order)?;
        let described = described(&resolved)?;
        let every = between_samples(order, &resolved);
        let mut run = Simulation::<Length>::new(&resolved)
            .digest(order.digest)
            .samples(every)
            .packet_log(order.packets)
            .run_watched(&mut |underway| match page.progress(underway.share) {
                Demand::Continue => Progress::Continue,
                Demand::Stop => Progress::Stop,
                Demand::Part => {
                    if let Some(part) = part(underway, &order.tables) {
                        page.part(&part.into_octets());
                    }
                    Progress::Continue
                }
            })?;
        let log = run.network.log_mut().map(std::mem::take);
        let packets = log.as_ref().map(Packets::of).unwrap_or_default();
        let head = json!({
            "scenario": described,
            "sample_s": every.map(Duration::as_secs_f64),
            "summary": run.summary,
            "left_out_packets": packets.left_out,
        });
        let last = self.last.insert(Last { run, packets });
        last.message(&head, &order.tables)
    }

    fn tables(&self, order: &Tables) -> Result<Message, Problem> {
        let last = self.last.as_ref();
        let last = last.ok_or_else(|| Problem::request("there is no run"))?;
        last.message(&json!({}), &order.tables)
    }
}

fn resolve(order: &Run) -> Result<Resolved, Problem> {
    let extensions = Extensions::default()
        .files(|_, _| Err("the studio reads no files".to_owned()))
        .untrusted(true);
    let mut scenario = Scenario::parse(&order.scenario, "scenario.toml", &extensions)?;
    for set in &order.set {
        scenario.set(set)?;
    }
    Ok(scenario.resolve(order.seed)?)
}

/// The samples of a run under way, among the tables of its order; `None` before the first sample.
fn part(underway: &Underway<'_, Length>, wanted: &[Wanted]) -> Option<Message> {
    let samples = underway.samples;
    // A flow of UDP has no samples.
    let until = samples.flows.last().map(|sample| sample.at);
    let until = until.or_else(|| samples.links.last().map(|sample| sample.at))?;
    let mut message = Message::of(&json!({ "until_s": until.as_secs_f64() }));
    for wanted in wanted {
        if let Wanted::Whole(name) = wanted
            && let Some(table) = anabranch_results::build_underway(underway, name).ok()?
        {
            message.table(name, &table);
        }
    }
    Some(message)
}

/// The time between samples, which limits their number; `None` without samples.
fn between_samples(order: &Run, resolved: &Resolved) -> Option<Duration> {
    let each = (resolved.flows.len() + 2 * resolved.links.len()) as u64;
    let most = (MOST_SAMPLES / each.max(1)).max(1);
    let whole = resolved.duration.as_picos();
    let least = (whole / most).max(1);
    let every = match (order.samples_ms, order.samples.unwrap_or(SAMPLES)) {
        (Some(ms), _) if ms.is_finite() && ms > 0.0 => Duration::from_secs_f64(ms / 1e3).as_picos(),
        (Some(_), _) => least,
        (None, 0) => return None,
        (None, samples) => whole / samples,
    };
    Some(Duration::from_picos(every.max(least)))
}

fn described(resolved: &Resolved) -> Result<Value, Problem> {
    serde_json::to_value(Described {
        title: &resolved.title,
        seed: resolved.seed,
        duration_s: resolved.duration.as_secs_f64(),
        warmup_s: resolved.warmup.as_secs_f64(),
        flows: resolved.flows.iter().map(|flow| &*flow.name).collect(),
        links: resolved.links.iter().map(|link| &*link.name).collect(),
        resolved_scenario: &resolved.json,
    })
    .map_err(Problem::request)
}

impl Last {
    fn message(&self, head: &Value, wanted: &[Wanted]) -> Result<Message, Problem> {
        let mut message = Message::of(head);
        for table in wanted {
            match table {
                Wanted::Whole(name) => {
                    let table = anabranch_results::build(&self.run, &self.packets, name);
                    message.table(name, &table.map_err(Problem::request)?);
                }
                Wanted::Packets { flow, columns } => {
                    message.table("packets", &self.packets(flow, columns)?);
                }
            }
        }
        Ok(message)
    }

    fn packets(&self, flow: &str, columns: &[String]) -> Result<Table, Problem> {
        let column = |name: &String| {
            let known = anabranch_results::packet_column(name);
            known.ok_or_else(|| Problem::request(format!("no column {name:?} in packets")))
        };
        let columns = columns.iter().map(column).collect::<Result<Vec<_>, _>>()?;
        let mut rows = Cursor::default().take(&self.packets, usize::MAX);
        rows.retain(|(row, _)| self.run.network.flow_name(row.flow) == flow);
        anabranch_results::packet_table(&self.run, &rows, &columns).map_err(Problem::request)
    }
}
