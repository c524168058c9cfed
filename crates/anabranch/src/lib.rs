//! Anabranch as a library: TCP on paths that reorder, lose, delay or split packets, or change their
//! capacity.
//!
//! A scenario file describes the network and its flows; [`Simulation`] runs it in virtual time. A
//! run is a function of (scenario, seed): identical on every machine and on any number of cores.
//!
//! ```
//! use anabranch::{Extensions, Scenario, Simulation};
//!
//! let text = r#"
//!     duration = "2 s"
//!     [link.path]
//!     between = ["A", "B"]
//!     rate = "10 Mbit/s"
//!     delay = "20 ms"
//!     queue = { kind = "drop-tail", limit = "1 bdp" }
//!     [flow.main]
//!     from = "A"
//!     to = "B"
//!     stack = "rfc"
//!     cc = "reno"
//! "#;
//! let scenario = Scenario::parse(text, "example.toml", &Extensions::default())?;
//! let run = Simulation::<anabranch::Length>::new(&scenario.resolve(None)?).run()?;
//! let goodput = run.summary.flows["main"]["goodput_mbit_s"].as_f64();
//! assert!(goodput.is_some_and(|mbit_s| mbit_s > 5.0 && mbit_s < 10.0));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Users can replace the built-in congestion controls, queues, impairments and whole hosts: see
//! [`Extensions`] and [`Simulation::hosts`]. [`network::Builder`] builds networks without a
//! scenario file.
#![forbid(unsafe_code)]

pub use anabranch_congestion::{self as cc, CongestionControl};
pub use anabranch_core::{
    body::{self, Body, Length, Octets},
    digest,
    interrupt::Interrupt,
    math, packet, registry, reordering, rng, system, trace, tunnel, units,
};
pub use anabranch_engine::{
    AckSample, Error as RunError, Finished, FlowSample, GroupSample, LinkSample, Progress, Samples,
    Simulation, Underway, network,
    record::{self},
    summary::{self, Summary},
    topology,
};
pub use anabranch_erasure as erasure;
pub use anabranch_fec as fec;
pub use anabranch_path::{
    group,
    heavy::{self, HeavyFlows},
    host::{self, Host},
    impair::{self, Impairment},
    link, middlebox, multipath,
    queue::{self, QueueDiscipline},
};
pub use anabranch_scenario::{
    self as scenario, Extensions, Resolved, Scenario,
    catalog::{self, catalog},
    workload,
};
pub use anabranch_tcp as tcp;
pub use anabranch_wire::{
    self as wire,
    transport::{self, Transport},
};
/// A value in scenario files and summaries; factories of [`Extensions`] receive their parameters in
/// this form.
pub use serde_json::Value;
