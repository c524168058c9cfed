//! Kernel settings of a scenario: congestion controls, socket options, settings of a namespace.

use std::{fs, io, net::IpAddr, os::fd::OwnedFd};

use anabranch_bpf::shipped::{self, Shipped};
use anabranch_congestion::{self as cc};
use anabranch_core::{
    system,
    units::{Bytes, Duration, Rate},
};
use anabranch_path::queue;
use anabranch_scenario::{Family, Protocol, Resolved, ResolvedFlow, workload};
use anabranch_tcp::{EcnMode, MtuDiscovery, Overrides, Profile, Recovery, Settings};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with, sockopt};

use crate::plan::{devices, refusal::Refusal};

/// Whether the end at `to` opens the connection, as a client of the request-response workload does.
pub const fn connects_back(flow: &ResolvedFlow) -> bool {
    matches!(flow.workload, workload::Config::RequestResponse(_))
}

/// Length of the IPv4 and TCP headers, and of TCP's timestamps. Over IPv6 a full segment is 20
/// bytes shorter, as on Ethernet.
const HEADERS: u32 = 40;
const TIMESTAMPS: u32 = 12;

/// Whether a flow's packets come from programs of the user or from an interface. Between hosts with
/// programs, a flow with an explicit workload has an application.
pub fn is_carried(flow: &ResolvedFlow, resolved: &Resolved) -> bool {
    has_interface(flow, resolved)
        || (!flow.gives("workload")
            && flow
                .ends
                .iter()
                .any(|node| resolved.attached[*node].exec.is_some()))
}

/// Whether an end of a flow is an interface.
pub fn has_interface(flow: &ResolvedFlow, resolved: &Resolved) -> bool {
    flow.ends
        .iter()
        .any(|node| resolved.attached[*node].interface.is_some())
}

/// Whether an end of a flow uses our own TCP, to which the flow's `stack` then belongs.
pub fn has_own_end(flow: &ResolvedFlow, resolved: &Resolved) -> bool {
    flow.ends
        .iter()
        .any(|node| resolved.attached[*node].has_own_tcp)
}

/// Whether the kernel's TCP sends the flow's data.
pub fn kernel_sends(flow: &ResolvedFlow, resolved: &Resolved) -> bool {
    !resolved.attached[flow.ends[0]].has_own_tcp
}

/// The options of a flow's sockets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SocketSettings {
    /// The kernel's name of the congestion control, if the kernel sends.
    pub congestion: Option<String>,
    /// `TCP_MAXSEG`: payload and timestamps.
    pub max_segment: i32,
    /// The largest window offered to the peer, in bytes; `None` if the kernel chooses it.
    pub window: Option<i32>,
    /// Whether small segments wait while data is outstanding (no `TCP_NODELAY`).
    pub nagle: bool,
    /// The local address of a connecting socket, if its host has several devices.
    pub local: Option<IpAddr>,
    /// The octet that holds the DSCP (`IP_TOS`, `IPV6_TCLASS`), its ECN bits 0.
    pub class: u8,
}

impl SocketSettings {
    /// The options for a flow; `congestion` is the kernel's name of the congestion control.
    pub fn of(flow: &ResolvedFlow, resolved: &Resolved, congestion: Option<&str>) -> Self {
        let fits = |bytes: u64| i32::try_from(bytes).unwrap_or(i32::MAX);
        // On a connection with our own TCP, the window setting is for our end.
        let chosen = !flow.stack.receive_autotuning && !has_own_end(flow, resolved);
        Self {
            congestion: congestion.map(str::to_owned),
            max_segment: fits(segment(&flow.stack).into()),
            window: chosen.then(|| fits(flow.stack.receive_window_bytes())),
            nagle: flow.stack.nagle,
            local: local(flow, resolved),
            class: flow.dscp << 2,
        }
    }
}

/// The local address of the connecting end of a flow, if its host has several devices.
pub fn local(flow: &ResolvedFlow, resolved: &Resolved) -> Option<IpAddr> {
    let side = usize::from(connects_back(flow));
    flow.devices[side]?;
    let device = devices::ends(resolved, flow)[side];
    Some(devices::address(device, flow.family == Family::V6))
}

/// Options of a socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SocketOption {
    Congestion,
    MaxSegment,
    Window,
    Class,
}

/// The option that a socket refused, and the error.
#[derive(Debug, thiserror::Error)]
#[error("{}: {}", .option.name(), system::words(.source))]
pub struct OptionError {
    pub option: SocketOption,
    pub source: io::Error,
}

impl SocketOption {
    /// The name in tcp(7).
    pub const fn name(self) -> &'static str {
        match self {
            Self::Congestion => "TCP_CONGESTION",
            Self::MaxSegment => "TCP_MAXSEG",
            Self::Window => "TCP_WINDOW_CLAMP",
            Self::Class => "IP_TOS",
        }
    }
}

impl From<OptionError> for io::Error {
    fn from(error: OptionError) -> Self {
        Self::new(error.source.kind(), error)
    }
}

/// Loss detection switches of a host's kernel: settings of its namespace.
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of its own")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Switches {
    sack: bool,
    dsack: bool,
    rack: bool,
    tlp: bool,
    frto: bool,
    timestamps: bool,
    discovery: MtuDiscovery,
}

impl Switches {
    pub fn of(stack: &Settings) -> Self {
        Self {
            sack: stack.sack,
            dsack: stack.dsack,
            rack: stack.recovery == Recovery::Rack,
            tlp: stack.tlp,
            frto: stack.frto,
            timestamps: stack.timestamps,
            discovery: stack.mtu_discovery,
        }
    }
    /// The switches of the kernels of a flow. At a connection with our own TCP the flow's stack is
    /// ours, and the kernel keeps its defaults.
    pub fn of_kernels(flow: &ResolvedFlow, resolved: &Resolved) -> Self {
        if has_own_end(flow, resolved) {
            return Self {
                timestamps: flow.stack.timestamps,
                ..Self::of(&kernel_stack())
            };
        }
        Self::of(&flow.stack)
    }
    /// Applies the switches to the stack of a scenario.
    pub fn put_into(self, stack: &mut Settings) {
        let changed = Overrides {
            sack: Some(self.sack),
            dsack: Some(self.dsack),
            // Without SACK there is no RACK either.
            rack: self.sack.then_some(self.rack),
            tlp: Some(self.tlp),
            frto: Some(self.frto),
            timestamps: Some(self.timestamps),
            // A kernel that ignores these reports fragments its packets.
            mtu_discovery: self.discovery.hears().then_some(self.discovery),
            ..Overrides::default()
        };
        // Contradictory switches were refused before.
        if let Ok(settings) = stack.with(&changed) {
            *stack = settings;
        }
    }
    /// The settings to be set to 0, as names below `/proc/sys`, with the keys of `transport` that
    /// request it. Empty if the kernel's defaults apply.
    fn off(self) -> impl Iterator<Item = (&'static str, &'static str)> {
        [
            (self.sack, "net/ipv4/tcp_sack", "sack"),
            (self.dsack, "net/ipv4/tcp_dsack", "dsack"),
            // Bit 1 is RACK; there is none without SACK.
            (self.rack || !self.sack, "net/ipv4/tcp_recovery", "rack"),
            (self.tlp || !self.sack, "net/ipv4/tcp_early_retrans", "tlp"),
            (self.frto, "net/ipv4/tcp_frto", "frto"),
            (self.timestamps, "net/ipv4/tcp_timestamps", "timestamps"),
        ]
        .into_iter()
        .filter(|(on, ..)| !on)
        .map(|(_, name, key)| (name, key))
    }
}

/// The TCP flows whose ends are in kernels of hosts, not at interfaces.
pub fn of_kernels(resolved: &Resolved) -> impl Iterator<Item = &ResolvedFlow> {
    let tcp = resolved.flows.iter();
    tcp.filter(|flow| flow.protocol == Protocol::Tcp && !has_interface(flow, resolved))
}

/// Octets of a full segment with its headers, over IPv4.
pub fn packet(stack: &Settings) -> i32 {
    i32::try_from(HEADERS + segment(stack)).unwrap_or(i32::MAX)
}

/// Octets of a full segment as in `TCP_MAXSEG`: with the timestamps.
pub fn segment(stack: &Settings) -> u32 {
    stack.mss + if stack.timestamps { TIMESTAMPS } else { 0 }
}

/// The kernel's name of a congestion control. A shipped eBPF control is loaded under a separate
/// name.
pub fn kernel_name(control: &cc::Config) -> String {
    if let Some(shipped) = shipped(control) {
        return shipped.kernel_name.to_owned();
    }
    match control.name() {
        "new-reno" => "reno",
        "westwood-plus" => "westwood",
        other => other,
    }
    .to_owned()
}

/// The shipped eBPF control, if it is one.
pub fn shipped(control: &cc::Config) -> Option<&'static Shipped> {
    match control {
        cc::Config::Custom(custom) if custom.name == "bpf" => {
            shipped::find(custom.params.get("name")?.as_str()?)
        }
        _ => None,
    }
}

/// The switches of the stack that models this kernel.
pub fn kernel_stack() -> Settings {
    stack_of_kernel("linux").expect("the registry has the default stack")
}

/// The switches of a profile that models the TCP of a kernel that can run live.
pub fn stack_of_kernel(name: &str) -> Option<Settings> {
    let profile = Profile::named(name)?;
    let is_live = profile.meta.name == "linux-6.12" || profile.aliases.contains(&"linux");
    is_live.then_some(profile.settings)
}

/// Checks whether a socket may have a congestion control here.
pub fn offers(congestion: &str) -> io::Result<()> {
    Ok(sockopt::set_tcp_congestion(&tcp_socket()?, congestion)?)
}

/// Checks whether a socket accepts the options of a flow's sockets.
pub fn takes(settings: &SocketSettings) -> io::Result<Result<(), OptionError>> {
    Ok(settings.try_on(&tcp_socket()?))
}

/// A new TCP socket.
pub fn tcp_socket() -> io::Result<OwnedFd> {
    Ok(socket_with(
        AddressFamily::INET,
        SocketType::STREAM,
        SocketFlags::CLOEXEC,
        None,
    )?)
}

/// The congestion controls of this kernel.
pub fn offered() -> Vec<String> {
    fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control")
        .unwrap_or_default()
        .split_whitespace()
        .map(str::to_owned)
        .collect()
}

/// The largest packet of the devices.
pub fn mtu(resolved: &Resolved) -> i32 {
    let tcp = resolved
        .flows
        .iter()
        .filter(|flow| flow.protocol == Protocol::Tcp)
        .map(|flow| HEADERS + segment(&flow.stack));
    let udp = resolved.flows.iter().filter_map(largest_datagram);
    // At least the MTU of Ethernet, and enough for the largest segment and datagram of the flows.
    i32::try_from(tcp.chain(udp).max().unwrap_or(0).max(1500)).unwrap_or(i32::MAX)
}

/// The largest packet of a UDP flow, in bytes; `None` for any other flow.
pub fn largest_datagram(flow: &ResolvedFlow) -> Option<u32> {
    if flow.protocol != Protocol::Udp {
        return None;
    }
    let octets = |bytes: Option<Bytes>| u32::try_from(bytes?.get()).ok();
    let payload = match &flow.workload {
        workload::Config::Paced(paced) => {
            octets(paced.writes.iter().max().copied().or(paced.payload))
        }
        workload::Config::Poisson(poisson) => octets(poisson.sizes.0.fixed()),
        workload::Config::OnOff(on_off) => octets(on_off.payload),
        workload::Config::Replay(_) => flow.replayed.as_ref().and_then(|replayed| {
            let packets = replayed.recording.packets().iter();
            let largest = packets.map(|packet| packet.size).max()?;
            Some(largest.saturating_sub(flow.udp_headers))
        }),
        workload::Config::Bulk
        | workload::Config::File(_)
        | workload::Config::RequestResponse(_) => None,
    };
    Some(payload.unwrap_or(0) + flow.udp_headers)
}

/// The default initial send buffer of a connection (`tcp_wmem`).
const FIRST_SEND_BUFFER: u64 = 16_384;
/// The default largest send buffer, and the largest initial buffer of an application.
const LARGE_SEND_BUFFER: u64 = 4 << 20;
/// The total of the initial buffers of all applications.
const SEND_BUFFERS: u64 = 256 << 20;

/// Settings of every namespace, as names below `/proc/sys` and values. `shell`: whether the run is
/// around a shell.
pub fn of_namespaces(resolved: &Resolved, shell: bool) -> Vec<(&'static str, String)> {
    let first = of_kernels(resolved).next();
    let on = |switch: bool| u8::from(switch).to_string();
    // If our own TCP negotiates accurate ECN, this kernel answers with classic ECN.
    let own = resolved.attached.iter().any(|host| host.has_own_tcp);
    let ecn = first.is_some_and(|flow| {
        let mode = flow.stack.ecn;
        mode == EcnMode::Rfc3168 || (own && mode.counts_marks())
    });
    // The limit of a receive buffer (`tcp_rmem`), which determines the window scale.
    let stack = first.map_or_else(kernel_stack, |flow| flow.stack.clone());
    let most = 2 * stack.receive_window_bytes();
    let mut settings = vec![
        // Metrics of one connection must not affect the next.
        ("net/ipv4/tcp_no_metrics_save", "1".to_owned()),
        // A port may be reused a second after its connection, so that many transfers find one.
        ("net/ipv4/tcp_tw_reuse", "1".to_owned()),
        // The kernel's default, whatever the setting of this machine.
        ("net/ipv4/tcp_timestamps", "1".to_owned()),
        ("net/ipv4/tcp_ecn", on(ecn)),
        (
            "net/ipv4/tcp_wmem",
            format!(
                "4096 {} {}",
                first_send_buffer(resolved, shell),
                largest_send_buffer(resolved)
            ),
        ),
        ("net/ipv4/tcp_rmem", format!("4096 131072 {most}")),
        // No duplicate address detection on a device without neighbours.
        ("net/ipv6/conf/default/accept_dad", "0".to_owned()),
        ("net/ipv6/conf/default/router_solicitations", "0".to_owned()),
        ("net/ipv6/conf/all/accept_ra", "0".to_owned()),
    ];
    if resolved
        .attached
        .iter()
        .any(|host| !host.devices.is_empty())
    {
        // A packet that arrives at one of several devices may be answered over another.
        settings.push(("net/ipv4/conf/all/rp_filter", "0".to_owned()));
        settings.push(("net/ipv4/conf/default/rp_filter", "0".to_owned()));
    }
    if let Some(flow) = first {
        // The kernel's default, whatever the setting of this machine.
        let probing = match Switches::of_kernels(flow, resolved).discovery {
            MtuDiscovery::Off | MtuDiscovery::Icmp => "0",
            MtuDiscovery::BlackHole => "1",
            MtuDiscovery::Probing => "2",
        };
        settings.push(("net/ipv4/tcp_mtu_probing", probing.to_owned()));
    }
    if smallest_mtu(resolved).is_some_and(|mtu| mtu < LEAST_KERNEL_MTU) {
        settings.push(("net/ipv4/route/min_pmtu", "68".to_owned()));
    }
    settings.extend(
        first
            .into_iter()
            .flat_map(|flow| Switches::of_kernels(flow, resolved).off())
            .map(|(name, _)| (name, "0".to_owned())),
    );
    settings
}

/// Default of `min_pmtu`: a kernel takes reports of a smaller MTU as this value, and fragments
/// packets.
const LEAST_KERNEL_MTU: u32 = 552;

/// The smallest MTU of all links that have one.
fn smallest_mtu(resolved: &Resolved) -> Option<u32> {
    let directions = resolved.links.iter().flat_map(|link| &link.directions);
    directions
        .filter_map(|part| part.mtu)
        .map(|mtu| mtu.bytes)
        .min()
}

/// Octets that a buffer may need; zero if unknown. A window of n octets takes about 2 n of memory
/// on either side; this is twice that, so that the buffer never limits.
fn needed_buffer(resolved: &Resolved) -> u64 {
    4 * largest_window(resolved)
}

/// The initial size of a send buffer in octets. An application always has more data to send: a
/// buffer that grew from 16 KiB would wake it at moments determined by TCP, and its write would
/// send data that TCP had deferred. If a program of the user may send, all sockets have the
/// default.
pub fn first_send_buffer(resolved: &Resolved, shell: bool) -> u64 {
    if shell || resolved.attached.iter().any(|host| host.exec.is_some()) {
        return FIRST_SEND_BUFFER;
    }
    let connections = resolved.flows.iter();
    let connections = connections.filter(|flow| flow.protocol == Protocol::Tcp);
    let share = SEND_BUFFERS / (connections.count() as u64).max(1);
    let need = match needed_buffer(resolved) {
        0 => u64::MAX,
        need => need,
    };
    need.min(share)
        .clamp(FIRST_SEND_BUFFER, LARGE_SEND_BUFFER)
        .min(largest_send_buffer(resolved))
}

/// The size to which a send buffer grows: the value of the kernels' flows, which is the same in all
/// of them.
fn largest_send_buffer(resolved: &Resolved) -> u64 {
    let mut flows = resolved.flows.iter();
    let asked = flows.find(|flow| flow.protocol == Protocol::Tcp && !has_own_end(flow, resolved));
    match asked.map_or(LARGE_SEND_BUFFER, |flow| flow.stack.send_buffer_bytes()) {
        u64::MAX => needed_buffer(resolved).max(LARGE_SEND_BUFFER),
        // The maximum of `tcp_wmem`.
        bytes => bytes.min(i32::MAX.unsigned_abs().into()),
    }
}

/// Checks whether the kernel has all settings that the scenario requires; `has` queries one by
/// name.
///
/// # Errors
/// With the first switch whose setting the kernel lacks.
pub fn check_switches<E>(
    resolved: &Resolved,
    has: impl Fn(&str) -> Result<bool, E>,
) -> Result<Result<(), Refusal>, E> {
    // The switches are the same in every flow.
    let Some(flow) = of_kernels(resolved).next() else {
        return Ok(Ok(()));
    };
    let asks_for_marks = matches!(flow.stack.ecn, EcnMode::Rfc3168);
    let marks = asks_for_marks.then_some(("net/ipv4/tcp_ecn", "ecn"));
    for (name, key) in Switches::of_kernels(flow, resolved).off().chain(marks) {
        if !has(name)? {
            return Ok(Err(Refusal::new(
                &["flow", &flow.table, "transport", key],
                format!(
                    "`{key}` cannot be set: this machine's kernel has no setting `{}`",
                    name.replace('/', ".")
                ),
                "expected the stack's own",
            )));
        }
    }
    Ok(Ok(()))
}

/// The most bytes that one flow can have in flight: bandwidth-delay product and queue.
fn largest_window(resolved: &Resolved) -> u64 {
    let directions = resolved.links.iter().flat_map(|link| {
        let members = link.group.as_ref().map_or(1, |group| group.members);
        let ways = link.directions.iter().zip(link.base_rtt);
        ways.map(move |(part, base_rtt)| (part, base_rtt, members))
    });
    let window = directions.map(|(part, base_rtt, members)| {
        let rate = part.rate.map_or(0, Rate::bits_per_s) * u64::from(members);
        let bdp = rate as f64 / 8.0 * base_rtt.as_secs_f64();
        bdp + queue_bytes(&part.queue, rate, base_rtt)
    });
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "bytes, and a cast saturates"
    )]
    let bytes = window.fold(0.0, f64::max) as u64;
    // More than the kernel accepts has no effect.
    bytes.min(256 << 20)
}

/// The capacity of a queue in bytes; a queue without a limit counts as ten bandwidth-delay
/// products.
fn queue_bytes(queue: &queue::Config, rate: u64, base_rtt: Duration) -> f64 {
    use anabranch_core::units::text::Limit;
    match queue.limit() {
        Some(Limit::Bytes(bytes)) => bytes.get() as f64,
        Some(Limit::Packets(packets)) => packets as f64 * 1500.0,
        _ => 10.0 * rate as f64 / 8.0 * base_rtt.as_secs_f64(),
    }
}
