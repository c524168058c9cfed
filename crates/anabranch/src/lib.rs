//! Anabranch as a library: what TCP does on a path that reorders, loses, delays, splits or changes
//! its capacity.
//!
//! A scenario file describes the network and its flows; [`Simulation`] runs it in virtual time. A
//! run is a function of (scenario, seed): the same on every machine and any number of cores.
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
//! Congestion controls, queues, impairments and whole hosts of one's own take the place of the
//! built-in ones: see [`Extensions`] and [`Simulation::hosts`]. Networks without a scenario file
//! are built with [`network::Builder`].
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
    Simulation, network,
    record::{self},
    summary::Summary,
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
/// What scenario files and summaries hold: parameters reach a factory of [`Extensions`] as this.
pub use serde_json::Value;
