//! The tables of a scenario file. These types are the only source of the format: they parse it, and
//! the JSON Schema and the reference are generated from them and their comments.

mod link;
mod open;
mod queue;
mod select;
mod trace;

pub use self::link::{Group, Link, OneWay};
pub(crate) use self::link::{Key, Way};
pub use self::open::{Anything, SweepTable};
pub use self::trace::{Delay, DelayKind, Service, TraceFile};
pub use anabranch_document::{
    Named,
    class::Class,
    select::{Dscp, Port},
};
pub use queue::Queue;
pub use select::{Address, Match};

use std::{borrow::Cow, fmt};

use anabranch_core::units::{Bytes, Duration};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{
    Deserialize, Deserializer, Serialize,
    de::{self, Unexpected, Visitor},
};

use super::{
    kind::Kind,
    types::{cc, fec, restore, split, tcp, workload},
};

pub use anabranch_path::group::{Spread, energy::PowerModel};

/// A scenario: a network, its flows, and the duration of the run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "scenario", title = "Anabranch scenario")]
pub struct File {
    /// A title in one line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// How long the run lasts.
    pub duration: Duration,
    /// Selects the random streams.
    #[serde(default = "one")]
    pub seed: u64,
    /// Metrics are counted from this time on.
    #[serde(default)]
    pub warmup: Duration,
    /// The Linux kernel that `--engine kernel` runs: its release or the start of it, such as `6.12`,
    /// with or without quotation marks. If omitted, the newest one that is built. Other engines
    /// ignore it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kernel: Option<String>,
    /// Changes in mid-run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub at: Vec<At>,
    /// Links, by name.
    #[serde(default)]
    pub link: Named<Link>,
    /// Aggregated links, by name.
    #[serde(default, skip_serializing_if = "Named::is_empty")]
    pub group: Named<Group>,
    /// Path splitters with their resequencers, by name.
    #[serde(default, skip_serializing_if = "Named::is_empty")]
    pub gateway: Named<Gateway>,
    /// Settings of end hosts, by the node's name.
    #[serde(default, skip_serializing_if = "Named::is_empty")]
    pub host: Named<Host>,
    /// Flows, by name.
    #[serde(default, skip_serializing_if = "Named::is_empty")]
    pub flow: Named<Flow>,
    /// A grid of runs, for `anabranch sweep`: `"dotted.path" = [values]`, and `repeat`.
    #[serde(default, skip_serializing)]
    pub sweep: SweepTable,
}

fn one() -> u64 {
    1
}

/// A change in mid-run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct At {
    /// The time of the change.
    pub time: Duration,
    /// The interval at which it is repeated until the run ends; without one it is made once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub every: Option<Duration>,
    /// The new values: `{ "link.isp1.up" = false }`. `up`, `rate`, `delay`, parameters of the queue
    /// and of impairments (`link.isp1.impair.0.rate`) can change.
    pub set: Named<Anything>,
}

/// A pair of path splitters with their resequencers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Gateway {
    /// The two ends.
    pub between: [String; 2],
    /// The links to split over, by name: two or more between the two ends, or one or more of a
    /// tunnel. They carry no other traffic.
    pub routes: Vec<String>,
    /// The devices at the two ends: a splitter and a restorer of the study, or the tunnel of
    /// `anabranch-gateway`.
    #[serde(default, skip_serializing_if = "GatewayKind::is_split")]
    pub kind: GatewayKind,
    /// The choice of the route for the next packet, made separately in each direction. `kind =
    /// "split"` requires it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub split: Option<Kind<split::Config>>,
    /// How order is restored at the end of the routes. `kind = "split"` requires it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub restore: Option<Kind<restore::Config>>,
    /// Bytes that the tunnel adds to each packet on the routes, up to 1500. The default is 0, or,
    /// if `split` or `restore` requires the tunnel's header, its 24 bytes and the 28 of the outer
    /// IPv4 and UDP headers. Only for `kind = "split"`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub overhead: Option<Bytes>,
    /// When each route is used: `{ lte = "backup" }`; the others are `"active"`. Only for `kind =
    /// "tunnel"`.
    #[serde(default, skip_serializing_if = "Named::is_empty")]
    pub policies: Named<Policy>,
    /// Classes of packets with a different treatment at both ends, by name, like `[class.NAME]` of
    /// `anabranch-gateway`: `[gateway.G.class.calls]` with `match = { dscp = "ef" }` and `mode =
    /// "interactive"`. The first class that fits a packet applies; `path` is a route. Only for
    /// `kind = "tunnel"`.
    #[serde(default, skip_serializing_if = "Named::is_empty")]
    pub class: Named<Class>,
    /// The readings of the clocks of the two ends at the start of the run, each up to 1000000 s; by
    /// default 0 s. Only for `kind = "tunnel"`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock_offset: Option<[Duration; 2]>,
}

/// The devices at the two ends of a gateway.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum GatewayKind {
    /// A splitter and a restorer, each chosen by name.
    #[default]
    Split,
    /// The tunnel of `anabranch-gateway`, with its handshake, probes, reports and retransmissions.
    Tunnel,
}

impl GatewayKind {
    #[expect(
        clippy::trivially_copy_pass_by_ref,
        reason = "serde calls it with a reference"
    )]
    fn is_split(&self) -> bool {
        *self == Self::Split
    }
}

/// When a route of a tunnel is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Policy {
    /// Always.
    #[default]
    Active,
    /// While all active routes are full, or if none delivers.
    Overflow,
    /// If no active or overflow route delivers.
    Backup,
    /// If no other route delivers.
    Metered,
}

/// Settings of an end host.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Host {
    /// The longest processing time of a packet before the host sends it. The time is uniform
    /// between 0 s and this value and drawn per packet, but no packet overtakes another (Floyd and
    /// Jacobson, "On Traffic Phase Effects in Packet-Switched Gateways", 1992). 0 s: none.
    pub processing_jitter: Duration,
    /// Delays from the arrival of TCP data to the application's read on this host, each drawn with
    /// equal probability. One read takes all data that has arrived by then. Without any,
    /// applications read at once. In the live engine, applications take the time they take.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub read_delays: Vec<Duration>,
    /// Read delays for the first read, and after 10 ms without a read: an idle application sleeps
    /// more deeply. Without any, `read_delays` apply throughout.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub idle_read_delays: Vec<Duration>,
    /// Delays from the establishment of a TCP connection to the first write of an application that
    /// sends from this host, each drawn with equal probability. Without any, it writes at once. In
    /// the live engine, applications take the time they take.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub first_write_delays: Vec<Duration>,
    /// Live engine only: `"namespace"`, the default, or `"interface:NAME"`: the host represents an
    /// interface of this machine, and every frame that arrives there is carried along the one flow
    /// that begins or ends at this host.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attach: Option<String>,
    /// Live engine only: the program to run on the host with its arguments, `["iperf3", "-c",
    /// "{B}"]`. `{B}` is the address of the host B, whose name also resolves to it. Flows of this
    /// host without a `workload` carry the program's packets.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exec: Option<Anything>,
    /// The TCP of this host in the live engine. `"kernel"`, the default: the TCP of this machine's
    /// kernel. `"own"`: ours, with the flow's `stack`; the kernel at the other end receives its
    /// segments as real packets. The simulator uses ours at every host and ignores this key.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tcp: Option<HostTcp>,
    /// Links, groups or gateways of this host, by name. In the live engine each has a network
    /// device of that name with its addresses; packets leave by the first unless a route says
    /// otherwise. If omitted, the host has one device, `path`. A flow has the addresses of the
    /// devices at the beginning of its routes. In the simulator devices have no addresses.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub devices: Vec<String>,
    /// Additional addresses of this host in the live engine, next to the addresses of its devices:
    /// `["192.0.2.1"]`. In the simulator its packets have the first IPv4 address, which classes of
    /// the gateway's tunnel see.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub addresses: Vec<Address>,
}

/// The TCP implementation of a host of the live engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum HostTcp {
    /// The kernel's.
    Kernel,
    /// Ours, as in the simulator.
    Own,
}

/// A flow, or `count` of them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Flow {
    /// The node that sends.
    pub from: String,
    /// The node that receives.
    pub to: String,
    /// The transport protocol.
    #[serde(default)]
    pub protocol: Protocol,
    /// The version of IP. The simulator has only version 4.
    #[serde(default)]
    pub family: Family,
    /// The differentiated services code point of its packets in both directions, a number or a name
    /// such as `"ef"`. Queues with traffic classes (`cake`) and the gateway's tunnel use it.
    #[serde(default, skip_serializing_if = "Dscp::is_default")]
    pub dscp: Dscp,
    /// Simulator only: the port at `to`, visible in captures and to classes of the gateway's
    /// tunnel; by default 5001. Each connection has a different port at `from`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub port: Option<Port>,
    /// The start time.
    #[serde(default)]
    pub start: Duration,
    /// Each copy starts later by a uniform random part of this span.
    #[serde(default)]
    pub start_spread: Duration,
    /// The stop time; by default the end of the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop: Option<Duration>,
    /// The number of copies.
    #[serde(default = "one_copy", deserialize_with = "copies")]
    #[schemars(range(min = 1, max = 1_000_000))]
    pub count: u32,
    /// The stack profile of both ends.
    #[serde(default = "newest_linux")]
    pub stack: String,
    /// The congestion control, built in or an eBPF program (`{ kind = "bpf", file = "my.bpf.c" }`);
    /// if omitted, the stack's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cc: Option<Kind<cc::Config>>,
    /// Switches that override the stack's.
    #[serde(default)]
    pub transport: tcp::Overrides,
    /// Redundancy inside the flow.
    #[serde(default)]
    pub fec: Kind<fec::Config>,
    /// The traffic of the application.
    #[serde(default)]
    pub workload: Kind<workload::Config>,
    /// The links and gateways to take, by name, from `from` to `to`; if omitted, the route with the
    /// fewest hops.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub route: Option<Vec<String>>,
    /// The links and gateways to take back, by name, from `to` to `from`; if omitted, `route`
    /// backwards.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub return_route: Option<Vec<String>>,
    /// Live engine only: the packets of programs that the flow carries, `{ port = 443 }` or `{
    /// prefix = "192.0.2.0/24" }`, in both directions. The first flow between two addresses whose
    /// `match` fits carries a packet; flows without `match` carry the remaining packets.
    #[serde(default, rename = "match", skip_serializing_if = "Option::is_none")]
    pub select: Option<Match>,
}

fn one_copy() -> u32 {
    1
}

/// Accepts any number of 32 bits. Resolving checks the limit, which applies to all flows together.
fn copies<'de, D: Deserializer<'de>>(from: D) -> Result<u32, D::Error> {
    struct Copies;
    impl Visitor<'_> for Copies {
        type Value = u32;
        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a whole number from 1 to 1000000")
        }
        fn visit_i64<E: de::Error>(self, number: i64) -> Result<u32, E> {
            u32::try_from(number).map_err(|_| E::invalid_value(Unexpected::Signed(number), &self))
        }
        fn visit_u64<E: de::Error>(self, number: u64) -> Result<u32, E> {
            u32::try_from(number).map_err(|_| E::invalid_value(Unexpected::Unsigned(number), &self))
        }
    }
    from.deserialize_u32(Copies)
}

fn newest_linux() -> String {
    "linux".to_owned()
}

/// A transport protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Protocol {
    /// TCP.
    #[default]
    Tcp,
    /// UDP.
    Udp,
}

/// A version of IP.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(try_from = "u8", into = "u8")]
pub enum Family {
    /// IPv4.
    #[default]
    V4,
    /// IPv6.
    V6,
}

impl TryFrom<u8> for Family {
    type Error = String;
    fn try_from(version: u8) -> Result<Self, String> {
        match version {
            4 => Ok(Self::V4),
            6 => Ok(Self::V6),
            _ => Err(format!("there is no IP version {version}; expected 4 or 6")),
        }
    }
}

impl From<Family> for u8 {
    fn from(family: Family) -> Self {
        match family {
            Family::V4 => 4,
            Family::V6 => 6,
        }
    }
}

impl JsonSchema for Family {
    fn schema_name() -> Cow<'static, str> {
        "Family".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "description": "A version of IP.", "enum": [4, 6] })
    }
}
