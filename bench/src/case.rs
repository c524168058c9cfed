//! The cases: networks, settling times and measured times.

use std::{fmt, str::FromStr};

use clap::ValueEnum as _;

use anabranch::{
    body::Length,
    network::{Builder, Network},
    units::{Duration, Instant},
};

mod contract;
pub mod dumbbell;
pub mod gateway;
mod parking_lot;
pub mod queues;
mod ring;
pub mod stack;

pub use contract::{Contract, scenarios};

/// Larger numbers of flows are measured on request.
const MOST_FLOWS: u32 = 10_000;

/// One of the cases.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, clap::ValueEnum)]
pub enum Kind {
    /// Bulk flows over a dumbbell, drop-tail.
    Plain,
    /// The same with the digest, the default of runs.
    Digest,
    /// As plain, with the profile `linux`.
    Linux,
    /// As plain, with ten times the rate, for ten times the flows.
    Many,
    /// Bulk flows around a ring of ten links per flow.
    Ring,
    /// As plain, with the fast path off.
    General,
    /// The dumbbell with RED that marks, ECN and random loss.
    RedEcnLoss,
    /// Three bottlenecks in a row, traffic both ways, short flows.
    ParkingLot,
    /// The contract's scenario files with samples and a packet log.
    Contract,
    /// The dumbbell with one queue after another, on the general path.
    Queues,
    /// The dumbbell with a group of eight as its bottleneck, on the general path.
    Group,
    /// The dumbbell with a pair of gateways and eight routes as its bottleneck, on the general
    /// path.
    Gateway,
}

impl Kind {
    /// Default cases, in the order of the tables.
    pub const ALL: [Self; 9] = [
        Self::Plain,
        Self::Digest,
        Self::Linux,
        Self::Many,
        Self::Ring,
        Self::General,
        Self::RedEcnLoss,
        Self::ParkingLot,
        Self::Contract,
    ];
    /// Name in results.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Plain => "plain",
            Self::Digest => "digest",
            Self::Linux => "linux",
            Self::Many => "many",
            Self::Ring => "ring",
            Self::General => "general",
            Self::RedEcnLoss => "red-ecn-loss",
            Self::ParkingLot => "parking-lot",
            Self::Contract => "contract",
            Self::Queues => "queues",
            Self::Group => "group",
            Self::Gateway => "gateway",
        }
    }
    /// Numbers of flows; 0 if the scenario specifies the number.
    const fn flows(self) -> &'static [u32] {
        match self {
            Self::Plain | Self::General => &[1, 10, 100, 1000],
            Self::Digest | Self::Linux | Self::Ring | Self::Gateway => &[10, 1000],
            Self::Many => &[10_000, 100_000],
            Self::RedEcnLoss => &[100, 1000],
            Self::ParkingLot => &[35],
            Self::Contract => &[0],
            Self::Queues => &[10],
            Self::Group => &[1, 10],
        }
    }
    /// Note on this version of the case for readers of the results.
    pub const fn note(self) -> Option<&'static str> {
        match self {
            Self::Contract => Some(
                "contract: samples every 10 ms and a row per packet stay in memory (the files are \
                 written by the Python layer); whole runs are timed, set-up and summary included",
            ),
            _ => None,
        }
    }
}

/// A case with its number of flows or its scenario file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Case {
    /// Kind of case.
    pub kind: Kind,
    /// Number of flows that send from start to end.
    pub flows: u32,
    /// Name of the scenario for [`Kind::Contract`], of the queue for [`Kind::Queues`], of the
    /// restorer for [`Kind::Gateway`].
    pub scenario: Option<String>,
}

impl Case {
    /// Creates a case without a scenario file.
    pub const fn new(kind: Kind, flows: u32) -> Self {
        Self {
            kind,
            flows,
            scenario: None,
        }
    }

    /// Returns all cases of these kinds, with these numbers of flows if any are given. Scenario
    /// files that this version cannot run are reported to `complain`.
    pub fn all(kinds: &[Kind], flows: &[u32], mut complain: impl FnMut(String)) -> Vec<Self> {
        let mut cases = Vec::new();
        for &kind in kinds {
            if kind == Kind::Contract {
                for scenario in scenarios() {
                    match Contract::open(scenario) {
                        Ok(contract) => cases.push(Self {
                            kind,
                            flows: contract.flows(),
                            scenario: Some(scenario.to_owned()),
                        }),
                        Err(error) => complain(format!("contract: {scenario}: {error}")),
                    }
                }
                continue;
            }
            if kind == Kind::Queues {
                cases.extend(queues::NAMES.map(|name| Self {
                    scenario: Some(name.to_owned()),
                    ..Self::new(kind, 10)
                }));
                continue;
            }
            let wanted = kind
                .flows()
                .iter()
                .filter(|&&n| flows.contains(&n) || flows.is_empty() && n <= MOST_FLOWS);
            for &n in wanted {
                if kind == Kind::Gateway {
                    cases.extend(gateway::NAMES.map(|name| Self {
                        scenario: Some(name.to_owned()),
                        ..Self::new(kind, n)
                    }));
                } else {
                    cases.push(Self::new(kind, n));
                }
            }
        }
        cases
    }

    /// Returns the network before its first event; `None` for [`Kind::Contract`], which has no
    /// steady state.
    pub fn network(&self, end: Duration, digest: bool) -> Option<Network<Length>> {
        let end = Instant::START + end;
        let builder = match self.kind {
            Kind::Plain | Kind::Digest => dumbbell::builder(self.flows, end, dumbbell::Path::Clean),
            Kind::Linux => self.clean_dumbbell(
                end,
                dumbbell::Setup {
                    profile: "linux",
                    ..dumbbell::Setup::default()
                },
            ),
            Kind::Many => self.clean_dumbbell(
                end,
                dumbbell::Setup {
                    gbit_per_s: 10,
                    ..dumbbell::Setup::default()
                },
            ),
            Kind::Ring => ring::builder(self.flows, end),
            Kind::General => {
                let mut builder = dumbbell::builder(self.flows, end, dumbbell::Path::Clean);
                builder.fast_path(false);
                builder
            }
            Kind::RedEcnLoss => dumbbell::builder(self.flows, end, dumbbell::Path::RedAndLoss),
            Kind::ParkingLot => parking_lot::builder(self.flows, end),
            Kind::Queues => {
                let queue = queues::config(self.scenario.as_deref()?)?;
                let path = dumbbell::Path::Queue(Box::new(queue));
                let mut builder = dumbbell::builder(self.flows, end, path);
                builder.fast_path(false);
                builder
            }
            Kind::Group => {
                let mut builder = dumbbell::builder(self.flows, end, dumbbell::Path::Group);
                builder.fast_path(false);
                builder
            }
            Kind::Gateway => {
                let name = self.scenario.clone()?;
                if !gateway::NAMES.contains(&name.as_str()) {
                    return None;
                }
                let mut builder = dumbbell::builder(self.flows, end, dumbbell::Path::Gateway(name));
                builder.fast_path(false);
                builder
            }
            Kind::Contract => return None,
        };
        let mut builder = builder;
        builder.digest(digest || self.kind == Kind::Digest);
        Some(builder.build())
    }

    fn clean_dumbbell(&self, end: Instant, setup: dumbbell::Setup) -> Builder<Length> {
        dumbbell::builder_of(self.flows, end, dumbbell::Path::Clean, setup)
    }

    /// Name of the case at the command line: `plain/10`, `contract/1/reordering`.
    pub fn id(&self) -> String {
        self.to_string()
    }
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.kind.name(), self.flows)?;
        self.scenario
            .as_ref()
            .map_or(Ok(()), |scenario| write!(f, "/{scenario}"))
    }
}

impl FromStr for Case {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let mut parts = text.split('/');
        let kind = parts
            .next()
            .and_then(|name| {
                Kind::value_variants()
                    .iter()
                    .find(|kind| kind.name() == name)
            })
            .copied();
        let flows = parts.next().and_then(|flows| flows.parse().ok());
        match (kind, flows) {
            (Some(kind), Some(flows)) => Ok(Self {
                kind,
                flows,
                scenario: parts.next().map(str::to_owned),
            }),
            _ => Err(format!(
                "`{text}` is no case; expected CASE/FLOWS, for example plain/10"
            )),
        }
    }
}

/// A part of a run, in simulated time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    /// Begin of the measurement.
    pub settled: Duration,
    /// End of the measurement.
    pub end: Duration,
}

impl Span {
    /// The timed span.
    pub const TIMED: Self = Self::seconds(5, 25);
    /// The span for counting instructions, which is some fifty times slower. Slow start and the
    /// recovery from its losses are over by then.
    pub const COUNTED: Self = Self::seconds(2, 4);
    /// The recovery from the losses of slow start, with 10 flows.
    pub const RECOVERY: Self = Self::milliseconds(1_000, 1_200);
    /// A span that shows that a case works. Packets of the ring need 260 ms to their receivers.
    pub const BRIEF: Self = Self::milliseconds(400, 500);
    /// One run of a scenario file beside none.
    pub const RUNS: Self = Self::seconds(0, 1);

    const fn seconds(settled: u64, end: u64) -> Self {
        Self::milliseconds(settled * 1_000, end * 1_000)
    }

    const fn milliseconds(settled: u64, end: u64) -> Self {
        Self {
            settled: Duration::from_millis(settled),
            end: Duration::from_millis(end),
        }
    }
}

#[cfg(test)]
mod tests {
    use anabranch::packet::FlowId;

    use super::*;

    #[test]
    fn ids_read_back() {
        let mut all = Case::all(Kind::value_variants(), &[], |_| {});
        assert!(all.len() > 10, "{all:?}");
        all.retain(|case| case.id().parse() != Ok(case.clone()));
        assert_eq!(all, []);
        assert!("plane/1".parse::<Case>().is_err());
    }

    /// Every case keeps its bottleneck busy, so that the timings are those of traffic.
    #[test]
    fn cases_fill_their_bottleneck() {
        for kind in [
            Kind::Plain,
            Kind::Linux,
            Kind::General,
            Kind::RedEcnLoss,
            Kind::ParkingLot,
            Kind::Group,
        ] {
            let flows = *kind.flows().first().expect("each has some");
            let case = Case::new(kind, flows.max(10));
            let end = Duration::from_secs(2);
            let mut network = case.network(end, false).expect("a network");
            network.run_through(Instant::START + end);
            // 83,333 packets of 1,500 bytes a second at 1 Gbit/s; half of it for slow start.
            assert!(
                network.delivered_packets() > 83_333,
                "{case}: {}",
                network.delivered_packets()
            );
        }
    }

    /// With few packets in flight per link, losses reduce the throughput.
    #[test]
    fn every_link_of_the_ring_is_busy_most_of_the_time() {
        let case = Case::new(Kind::Ring, 10);
        let end = Duration::from_secs(5);
        let mut network = case.network(end, false).expect("a network");
        network.run_through(Instant::START + end);
        // 83 packets of 1,500 bytes a second at 1 Mbit/s; every flow has half a link.
        let most = 10 * 83 * 5 / 2;
        let delivered = network.delivered_packets();
        assert!((most * 3 / 4..=most).contains(&delivered), "{delivered}");
    }

    #[test]
    fn a_hundred_thousand_flows_are_measured_on_request() {
        let many = |flows: &[u32]| -> Vec<u32> {
            let cases = Case::all(&[Kind::Many], flows, |_| {});
            cases.iter().map(|case| case.flows).collect()
        };
        assert_eq!(many(&[]), [10_000]);
        assert_eq!(many(&[100_000]), [100_000]);
    }

    #[test]
    fn the_digest_case_keeps_a_digest() {
        let end = Duration::from_millis(100);
        let network = |kind| Case::new(kind, 1).network(end, false).expect("a network");
        assert!(network(Kind::Digest).digest().is_some());
        assert!(network(Kind::Plain).digest().is_none());
    }

    #[test]
    fn the_fast_path_changes_no_digest() {
        let end = Duration::from_millis(500);
        let digest = |kind| {
            let mut network = Case::new(kind, 10).network(end, true).expect("a network");
            network.run_through(Instant::START + end);
            network.digest()
        };
        assert!(digest(Kind::Plain).is_some());
        assert_eq!(digest(Kind::Plain), digest(Kind::General));
    }

    /// RED marks packets, the endpoints respond to marks, and packets are lost.
    #[test]
    fn marks_and_losses_reach_the_endpoints() {
        let end = Duration::from_secs(5);
        let case = Case::new(Kind::RedEcnLoss, 200);
        let mut network = case.network(end, false).expect("a network");
        network.run_through(Instant::START + end);
        let (mut reductions, mut resent) = (0, 0);
        for flow in 0..case.flows {
            let (_, stats) = network.snapshot(FlowId(flow)).expect("our TCP");
            reductions += stats.ecn_reductions;
            resent += stats.retransmitted_packets;
        }
        assert!(reductions > 100, "{reductions}");
        // A thousandth of some 400,000 packets.
        assert!(resent > 200, "{resent}");
    }
}
