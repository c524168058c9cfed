//! One case: timed, counted and observed in separate processes.

use anabranch::units::Duration;

use crate::{
    case::{Case, Kind, Span},
    child::Task,
    process::{self, Error},
    report::Row,
};

/// Amount of work per case.
#[derive(Debug, Clone, Copy)]
pub struct Effort {
    /// Timings; the best counts.
    pub timings: u32,
    /// Whether instructions are counted.
    pub instructions: bool,
}

/// Measures a case.
pub fn measure(case: &Case, effort: Effort) -> Result<Row, Error> {
    let mut best = 0.0_f64;
    let mut peak_rss_bytes: Option<u64> = None;
    let mut events_per_packet = 0.0;
    for _ in 0..effort.timings.max(1) {
        let found = process::child(case, Task::Time)?;
        best = best.max(found.packets as f64 / found.cpu_s);
        peak_rss_bytes = peak_rss_bytes.max(found.peak_rss_bytes);
        events_per_packet = found.events_per_packet;
    }
    let observed = process::child(case, Task::Observe(case.timed().end))?;
    // Ten times the packets would take minutes.
    let instructions_per_packet = if effort.instructions && case.kind != Kind::Many {
        Some(instructions_per_packet(case, Span::COUNTED)?)
    } else {
        None
    };
    let per_flow = |bytes: u64| bytes as f64 / f64::from(case.flows.max(1));
    Ok(Row {
        case: case.kind.name(),
        scenario: case.scenario.clone(),
        flows: case.flows,
        packets_per_cpu_s: best,
        instructions_per_packet,
        events_per_packet,
        bytes_per_flow: per_flow(observed.peak_bytes),
        built_bytes_per_flow: (case.kind != Kind::Contract).then(|| per_flow(observed.built_bytes)),
        packets_in_flight: (observed.in_flight > 0).then_some(observed.in_flight),
        peak_rss_bytes,
        digest: observed.digest,
    })
}

/// Difference of two run lengths, so that set-up, slow start and start-up cancel.
pub fn instructions_per_packet(case: &Case, span: Span) -> Result<f64, Error> {
    let (short, fewer) = process::counted_child(case, Task::Count(span.settled))?;
    let (long, more) = process::counted_child(case, Task::Count(span.end))?;
    Ok((more - fewer) as f64 / (long.packets - short.packets) as f64)
}

/// The digest of a run up to `end`.
pub fn digest(case: &Case, end: Duration) -> Result<Option<String>, Error> {
    Ok(process::child(case, Task::Observe(end))?.digest)
}
