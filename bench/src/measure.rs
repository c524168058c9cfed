//! One case: timed, counted and observed in separate processes.

use crate::{
    case::{Case, Kind, Span},
    child::{Findings, Task},
    process::{Error, Job},
    report::Row,
};

/// The brief benchmark counts no instructions of cases that take longer than this.
const BRIEF_CPU_S: f64 = 0.5;

/// Amount of work per case.
#[derive(Debug, Clone, Copy)]
pub struct Effort {
    /// Timings; the best counts.
    pub timings: u32,
    /// Whether instructions are counted.
    pub instructions: bool,
    /// Whether a fraction of a second is measured, which shows that a case works.
    pub brief: bool,
}

impl Effort {
    /// The timed part of a case.
    const fn timed(self, case: &Case) -> Span {
        match case.kind {
            _ if self.brief => Span::BRIEF,
            // Ten times the packets.
            Kind::Many => Span::COUNTED,
            _ => Span::TIMED,
        }
    }

    /// The part of a case whose instructions are counted.
    const fn counted(self, case: &Case) -> Span {
        match case.kind {
            Kind::Contract => Span::RUNS,
            _ if self.brief => Span::BRIEF,
            _ => Span::COUNTED,
        }
    }
}

/// Measures a case.
pub fn measure(case: &Case, effort: Effort) -> Result<Row, Error> {
    let span = effort.timed(case);
    let time = Job::new(case, Task::Time(span));
    let mut best = 0.0_f64;
    let mut peak_rss_bytes: Option<u64> = None;
    let mut timed = Findings::default();
    for _ in 0..effort.timings.max(1) {
        timed = time.run()?.0;
        best = best.max(timed.packets as f64 / timed.cpu_s);
        peak_rss_bytes = peak_rss_bytes.max(timed.peak_rss_bytes);
    }
    let counted = effort.counted(case);
    let mut jobs = vec![
        Job::new(case, Task::Observe(span.end)),
        Job::counting(case, counted.end),
        Job::counting(case, counted.settled),
    ];
    // Ten times the packets would take minutes, and so would a long scenario file.
    let is_long = effort.brief && timed.cpu_s > BRIEF_CPU_S;
    if !effort.instructions || case.kind == Kind::Many || is_long {
        jobs.truncate(1);
    }
    // Nothing is timed here, so the jobs may share the processors.
    let mut done = Job::run_all(&jobs).into_iter();
    let mut next = || done.next().transpose();
    let (observed, _) = next()?.expect("one result per job");
    let (long, short) = (next()?, next()?);
    let instructions_per_packet = long.zip(short).map(|(long, short)| {
        let packets = long.0.packets - short.0.packets;
        (long.1 - short.1) as f64 / packets as f64
    });
    let per_flow = |bytes: u64| bytes as f64 / f64::from(case.flows.max(1));
    Ok(Row {
        case: case.kind.name(),
        scenario: case.scenario.clone(),
        flows: case.flows,
        packets_per_cpu_s: best,
        instructions_per_packet,
        events_per_packet: timed.events as f64 / timed.packets as f64,
        bytes_per_flow: per_flow(observed.peak_bytes),
        built_bytes_per_flow: (case.kind != Kind::Contract).then(|| per_flow(observed.built_bytes)),
        packets_in_flight: (observed.in_flight > 0).then_some(observed.in_flight),
        peak_rss_bytes,
        digest: observed.digest,
    })
}
