//! The tables of a scenario file. These types are the only source of the format: they parse it,
//! and the JSON Schema and the reference come from them and their comments.

mod open;
mod queue;
mod select;
mod trace;

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

use anabranch_core::units::{
    Bytes, Duration,
    text::{Limit, LinkRate},
};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{
    Deserialize, Deserializer, Serialize,
    de::{self, Unexpected, Visitor},
};

use super::{
    kind::Kind,
    types::{cc, control, fec, impair, lacp, restore, split, tcp, workload},
};

pub use anabranch_path::group::{Spread, energy::PowerModel};

/// A scenario: a network, the flows on it, and how long to watch them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "scenario", title = "Anabranch scenario")]
pub struct File {
    /// One line for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// How long the run lasts.
    pub duration: Duration,
    /// Picks the random streams.
    #[serde(default = "one")]
    pub seed: u64,
    /// Metrics count from here on.
    #[serde(default)]
    pub warmup: Duration,
    /// The Linux kernel that `--engine kernel` runs, by the beginning of its release, `"6.12"`; the newest that is built
    /// when left out. Other engines do not read it.
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
    /// What end hosts add, by the node's name.
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
    /// When.
    pub time: Duration,
    /// How long until it is made again, until the run ends; without one it is made once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub every: Option<Duration>,
    /// What: `{ "link.isp1.up" = false }`. `up`, `rate`, `delay`, parameters of the queue and of impairments
    /// (`link.isp1.impair.0.rate`).
    pub set: Named<Anything>,
}

/// A link between two nodes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Link {
    /// The two ends; `forward` is from the first to the second.
    pub between: [String; 2],
    /// A ready path (`anabranch list paths`): its values hold where this table gives none. A value here holds for both directions,
    /// whatever the path gives for one; a table without `kind` is put over the path's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// How fast it sends.
    #[serde(default)]
    pub rate: LinkRate,
    /// How long a packet travels once it is sent, always or by a trace; without one as the delays beside the rates of
    /// `service` say, or 0 s.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delay: Option<Delay>,
    /// Whether a packet that leaves after the delay has fallen may overtake those under way, whose delay is the one at which they
    /// left. Otherwise it waits for them: the link keeps order.
    #[serde(default, skip_serializing_if = "is_false")]
    pub overtake: bool,
    /// What waits for the link; without one an unlimited drop-tail queue.
    #[serde(default)]
    pub queue: Queue,
    /// The most that it holds in all: packets that wait, are being sent and propagate, in packets, bytes or bandwidth-delay
    /// products. A packet that finds it full is dropped. The `limit` of netem is such a bound, by default 1000 packets whatever the
    /// delay.
    #[serde(default, skip_serializing_if = "is_unlimited")]
    pub held_limit: Limit,
    /// What befalls packets in flight, in this order.
    #[serde(default)]
    pub impair: Vec<Kind<impair::Config>>,
    /// How the capacity behaves.
    #[serde(default)]
    pub service: Kind<Service>,
    /// Whether it works.
    #[serde(default = "yes")]
    pub up: bool,
    /// The largest IP packet that it carries, 68 to 65535 bytes; without one packets of any size. What is larger is dropped:
    /// nothing is fragmented.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-minimum" = "68 bytes", "x-maximum" = "65535 bytes"))]
    pub mtu: Option<Bytes>,
    /// Whether the router before it answers what it drops for its size, with the MTU (ICMP, RFC 1191, RFC 8201), so that
    /// senders adapt; it does by default. `false` makes it a black hole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mtu_reports: Option<bool>,
    /// What differs from the first end to the second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forward: Option<OneWay>,
    /// What differs from the second end to the first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reverse: Option<OneWay>,
}

fn yes() -> bool {
    true
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde calls it with a reference"
)]
fn is_false(value: &bool) -> bool {
    !*value
}

fn is_unlimited(limit: &Limit) -> bool {
    *limit == Limit::Unlimited
}

/// What one direction of a link does otherwise; each value replaces the link's as a whole.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct OneWay {
    /// How fast it sends.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate: Option<LinkRate>,
    /// How long a packet travels once it is sent, always or by a trace.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delay: Option<Delay>,
    /// Whether a packet that leaves after the delay has fallen may overtake those under way.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub overtake: Option<bool>,
    /// What waits for the link.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queue: Option<Queue>,
    /// The most that it holds in all: packets that wait, are being sent and propagate, in packets, bytes or bandwidth-delay
    /// products. A packet that finds it full is dropped. The `limit` of netem is such a bound, by default 1000 packets whatever the
    /// delay.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub held_limit: Option<Limit>,
    /// What befalls packets in flight, in this order.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub impair: Option<Vec<Kind<impair::Config>>>,
    /// How the capacity behaves.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub service: Option<Kind<Service>>,
    /// Whether it works.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub up: Option<bool>,
    /// The largest IP packet that it carries, 68 to 65535 bytes; without one packets of any size. What is larger is dropped:
    /// nothing is fragmented.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-minimum" = "68 bytes", "x-maximum" = "65535 bytes"))]
    pub mtu: Option<Bytes>,
    /// Whether the router before it answers what it drops for its size, with the MTU (ICMP, RFC 1191, RFC 8201), so that
    /// senders adapt; it does by default. `false` makes it a black hole.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mtu_reports: Option<bool>,
}

impl<T: Default> Default for Kind<T> {
    fn default() -> Self {
        Self::BuiltIn(T::default())
    }
}

/// An aggregated link.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Group {
    /// The two ends.
    pub between: [String; 2],
    /// How many links it has, 1 to 64.
    pub members: u32,
    /// How fast one member sends; not unlimited.
    #[serde(default)]
    pub rate: LinkRate,
    /// How long a packet travels once it is sent.
    #[serde(default)]
    pub delay: Duration,
    /// What waits for the members, shared by all.
    #[serde(default)]
    pub queue: Queue,
    /// The most that it holds in all: packets that wait, are being sent and propagate, in packets, bytes or bandwidth-delay
    /// products. A packet that finds it full is dropped. The `limit` of netem is such a bound, by default 1000 packets whatever the
    /// delay.
    #[serde(default, skip_serializing_if = "is_unlimited")]
    pub held_limit: Limit,
    /// What befalls packets in flight, in this order.
    #[serde(default)]
    pub impair: Vec<Kind<impair::Config>>,
    /// How the capacity behaves.
    #[serde(default)]
    pub service: Kind<Service>,
    /// Whether it works.
    #[serde(default = "yes")]
    pub up: bool,
    /// The largest IP packet that it carries, 68 to 65535 bytes; without one packets of any size. What is larger is dropped:
    /// nothing is fragmented.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-minimum" = "68 bytes", "x-maximum" = "65535 bytes"))]
    pub mtu: Option<Bytes>,
    /// Whether the router before it answers what it drops for its size, with the MTU (ICMP, RFC 1191, RFC 8201), so that
    /// senders adapt; it does by default. `false` makes it a black hole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mtu_reports: Option<bool>,
    /// What differs from the first end to the second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forward: Option<OneWay>,
    /// What differs from the second end to the first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reverse: Option<OneWay>,
    /// Who gets the next packet.
    #[serde(default)]
    pub spread: Spread,
    /// What decides how many members are on.
    #[serde(default)]
    pub control: Kind<control::Config>,
    /// How long a member that was switched off takes to wake up; at most the controller's interval.
    #[serde(default)]
    pub wake_time: Duration,
    /// How often both ends say how they are, where members are switched (IEEE 802.1AX-2014 §6.4.13).
    #[serde(default)]
    pub lacp_rate: lacp::LacpRate,
    /// What one port draws; both ends of each member have one.
    #[serde(default)]
    pub power: PowerModel,
}

/// A pair of path splitters with their resequencers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Gateway {
    /// The two ends.
    pub between: [String; 2],
    /// The links to split over, by name: two or more between the two ends, or one or more of a tunnel. They carry nothing else.
    pub routes: Vec<String>,
    /// What stands at the two ends: a splitter and a restorer of the study, or the tunnel that `anabranch-gateway` runs.
    #[serde(default, skip_serializing_if = "GatewayKind::is_split")]
    pub kind: GatewayKind,
    /// Which route the next packet takes, in each direction by itself. `kind = "split"` needs it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub split: Option<Kind<split::Config>>,
    /// How order is restored where the routes end. `kind = "split"` needs it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub restore: Option<Kind<restore::Config>>,
    /// Bytes that the tunnel adds to each packet on the routes, up to 1500; by default 0, or, where `split` or `restore`
    /// needs the tunnel's header, its 24 bytes and the 28 of IPv4 and UDP around it. Only for `kind = "split"`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub overhead: Option<Bytes>,
    /// When each route is used: `{ lte = "backup" }`; the others are `"active"`. Only for `kind = "tunnel"`.
    #[serde(default, skip_serializing_if = "Named::is_empty")]
    pub policies: Named<Policy>,
    /// Packets that both ends treat otherwise, by name, as `[class.NAME]` of `anabranch-gateway` does: `[gateway.G.class.calls]` with
    /// `match = { dscp = "ef" }` and `mode = "interactive"`. The first class that fits a packet holds; `path` is a route. Only for
    /// `kind = "tunnel"`.
    #[serde(default, skip_serializing_if = "Named::is_empty")]
    pub class: Named<Class>,
    /// What the clocks of the two ends show at the start of the run, each up to 1000000 s; by default 0 s. Only for
    /// `kind = "tunnel"`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock_offset: Option<[Duration; 2]>,
}

/// What stands at the two ends of a gateway.
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
    /// Where no active route delivers.
    Backup,
    /// As a backup, and probed as little as possible.
    Metered,
}

/// What an end host adds.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Host {
    /// The longest time that the host takes over a packet before it sends it: uniform between 0 s and this,
    /// for each packet by itself, but none overtakes another (Floyd and Jacobson, "On Traffic Phase Effects
    /// in Packet-Switched Gateways", 1992). 0 s: none.
    pub processing_jitter: Duration,
    /// How long after data has come over TCP the applications here read it, each of these as often as any other; one read
    /// takes all that is there by then. Without any they read at once. Live, applications take what time they take.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub read_delays: Vec<Duration>,
    /// The same for the first read, and where nothing has been read for 10 ms: an application that waits that long sleeps more deeply.
    /// Without any it is `read_delays` all the time.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub idle_read_delays: Vec<Duration>,
    /// How long after its connection over TCP stands an application that sends from here writes for the first time, each of these as
    /// often as any other. Without any it writes at once. Live, applications take what time they take.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub first_write_delays: Vec<Duration>,
    /// Live engine only: `"namespace"`, which is the default, or `"interface:NAME"`: the host stands for an interface
    /// of this machine, and every frame that arrives there is carried along the one flow that begins or ends here.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attach: Option<String>,
    /// Live engine only: what to run there, a program and its arguments, `["iperf3", "-c", "{B}"]`; `{B}` is the address of
    /// the host B, which is also found by its name. Flows of this host without a `workload` carry its packets.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exec: Option<Anything>,
    /// Whose TCP is at work here in the live engine. `"kernel"`, which is the default: this machine's. `"own"`: ours, with
    /// the flow's `stack`, whose segments the kernel at the other end gets as real packets. The simulator has ours at every
    /// host, whatever stands here.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tcp: Option<HostTcp>,
    /// Links, groups or gateways of this host, by name, each of which has in the live engine a network device of that name with
    /// addresses of its own; the first is where packets leave for which nothing says otherwise. Without it the host has one device,
    /// `path`. A flow has the addresses of the devices over which its ways begin. In the simulator devices have no addresses.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub devices: Vec<String>,
    /// Addresses that this host has in the live engine besides those of its devices: `["192.0.2.1"]`. In the simulator its packets
    /// have the first of IPv4, which classes of the gateway's tunnel see.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub addresses: Vec<Address>,
}

/// Whose TCP a host of the live engine has.
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
    /// The version of IP.
    #[serde(default)]
    pub family: Family,
    /// The differentiated services code point of its packets in both directions, a number or a name such as `"ef"`. Queues that
    /// tell classes apart see it (`cake`), and so does the gateway's tunnel.
    #[serde(default, skip_serializing_if = "Dscp::is_default")]
    pub dscp: Dscp,
    /// Simulator only: the port at `to`, which captures and classes of the gateway's tunnel see; by default 5001. Each connection has
    /// another port at `from`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub port: Option<Port>,
    /// When it starts.
    #[serde(default)]
    pub start: Duration,
    /// Each copy starts later by a uniform draw from this span.
    #[serde(default)]
    pub start_spread: Duration,
    /// When it stops; without one at the end of the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop: Option<Duration>,
    /// How many copies there are.
    #[serde(default = "one_copy", deserialize_with = "copies")]
    #[schemars(range(min = 1, max = 1_000_000))]
    pub count: u32,
    /// The stack profile of both ends.
    #[serde(default = "newest_linux")]
    pub stack: String,
    /// The congestion control, built in or an eBPF program (`{ kind = "bpf", file = "my.bpf.c" }`); without one
    /// the stack's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cc: Option<Kind<cc::Config>>,
    /// Switches over the stack's.
    #[serde(default)]
    pub transport: tcp::Overrides,
    /// Redundancy inside the flow.
    #[serde(default)]
    pub fec: Kind<fec::Config>,
    /// What the application sends.
    #[serde(default)]
    pub workload: Kind<workload::Config>,
    /// The links and gateways to take, by name, from `from` to `to`; without them the way with the fewest hops.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub route: Option<Vec<String>>,
    /// The links and gateways to take back, by name, from `to` to `from`; without them `route` backwards.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub return_route: Option<Vec<String>>,
    /// Live engine only: which packets of programs it carries, `{ port = 443 }` or `{ prefix = "192.0.2.0/24" }`, in both directions. The first
    /// flow between two addresses whose `match` fits takes a packet; what fits none is for the flows without it.
    #[serde(default, rename = "match", skip_serializing_if = "Option::is_none")]
    pub select: Option<Match>,
}

fn one_copy() -> u32 {
    1
}

/// What is in 32 bits; how many flows there may be is for resolving to say, which knows them all.
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
