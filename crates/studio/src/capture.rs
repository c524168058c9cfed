//! Diagnoses of the page's capture.

use anabranch_diagnose::{Bounds, Watch, diagnose, finding::Kind, limit::Limit, trace};
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
        let report = diagnose(Capture::of(page), &order.name, Bounds::DEFAULT, || false);
        let report = report.map_err(Problem::request)?;
        return Ok(Message::of(&json!({
            "report": report,
            "terms": { "limits": Limit::ALL.map(Limit::meta), "findings": Kind::ALL.map(Kind::meta) },
        })));
    }
    let watch = Watch {
        connections: order.connections.clone(),
        frames: std::collections::BTreeSet::new(),
        points: order.points.unwrap_or(POINTS),
    };
    let traces = trace(Capture::of(page), Bounds::DEFAULT, &watch, || false);
    let traces = traces.map_err(Problem::request)?;
    Ok(Message::of(&json!({ "traces": traces })))
}
