//! Diagnoses of the page's capture, or of its qlog.

use anabranch_diagnose::{
    Bounds, Report, Watch, diagnose,
    finding::Kind,
    limit::Limit,
    log::{diagnose_log, is_log, trace_log},
    trace,
    trace::Trace,
};
use serde_json::json;

use crate::{
    Problem,
    message::Message,
    page::{Capture, Page},
    request::Diagnose,
};

/// Most points of each line of a trace, if the request does not say how many.
const POINTS: usize = 20_000;

/// The report of the capture and the meaning of its terms, or traces of its connections.
pub(crate) fn diagnosis(order: &Diagnose, page: &mut dyn Page) -> Result<Message, Problem> {
    if order.connections.is_empty() {
        return Ok(Message::of(&json!({
            "report": report(&order.name, page)?,
            "terms": { "limits": Limit::ALL.map(Limit::meta), "findings": Kind::ALL.map(Kind::meta) },
        })));
    }
    let watch = Watch {
        connections: order.connections.clone(),
        frames: std::collections::BTreeSet::new(),
        points: order.points.unwrap_or(POINTS),
    };
    Ok(Message::of(&json!({ "traces": traces(&watch, page)? })))
}

fn report(name: &str, page: &mut dyn Page) -> Result<Report, Problem> {
    let mut file = Capture::of(page);
    if is_log(&mut file).map_err(Problem::request)? {
        diagnose_log(file, name, Bounds::DEFAULT, || false).map_err(Problem::request)
    } else {
        diagnose(file, name, Bounds::DEFAULT, || false).map_err(Problem::request)
    }
}

fn traces(watch: &Watch, page: &mut dyn Page) -> Result<Vec<Trace>, Problem> {
    let mut file = Capture::of(page);
    if is_log(&mut file).map_err(Problem::request)? {
        trace_log(file, Bounds::DEFAULT, watch, || false).map_err(Problem::request)
    } else {
        trace(file, Bounds::DEFAULT, watch, || false).map_err(Problem::request)
    }
}
