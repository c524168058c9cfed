//! Check that the packets in unlimited queues fit into this machine's memory.

use std::{collections::BTreeMap, fs};

use anabranch::{
    Resolved,
    scenario::{Hop, Protocol, ResolvedFlow, Step},
    units::{Rate, text::Limit},
};

/// Memory of a queued packet: its slots in the pool and in the queue, and its record at the sender.
const OF_A_PACKET: u64 = 400;
/// Approximate payload of a full packet in octets.
const PAYLOAD: u64 = 1_448;
const PICOS_PER_S: u128 = 1_000_000_000_000;

/// A warning if flows may fill unlimited queues with more packets than fit into memory.
pub fn remark(resolved: &Resolved) -> Option<String> {
    let available = available_bytes()?;
    let packets = packets(resolved);
    let needed = packets.saturating_mul(OF_A_PACKET);
    (needed > available / 2).then(|| {
        format!(
            "the unlimited queues of this scenario may hold up to {packets} packets, some {:.1} GB of memory, and \
             {:.1} GB are available: give links a `queue` with a `limit`",
            needed as f64 / 1e9,
            available as f64 / 1e9
        )
    })
}

/// Largest number of packets in unlimited queues: the windows of the flows that pass one, bounded
/// by the number that the fastest link of these flows sends in the run.
fn packets(resolved: &Resolved) -> u64 {
    let mut by_fastest: BTreeMap<_, u64> = BTreeMap::new();
    for flow in resolved
        .flows
        .iter()
        .filter(|flow| meets_unlimited(resolved, flow))
    {
        let hops = flow.route.iter().filter_map(|step| match step {
            Step::Link(hop) => Some((rate(resolved, *hop)?, hop.link, hop.direction as usize)),
            Step::Gateway { .. } => None,
        });
        let held = by_fastest.entry(hops.max()).or_default();
        *held = held.saturating_add(window(flow) / u64::from(flow.stack.mss.max(1)));
    }
    let bounded = by_fastest.into_iter().map(|(fastest, held)| {
        let sent = fastest.map_or(u64::MAX, |(rate, ..)| {
            let bits = u128::from(rate.bits_per_s()) * u128::from(resolved.duration.as_picos());
            u64::try_from(bits / PICOS_PER_S / 8).unwrap_or(u64::MAX) / PAYLOAD
        });
        held.min(sent)
    });
    bounded.fold(0, u64::saturating_add)
}

fn rate(resolved: &Resolved, hop: Hop) -> Option<Rate> {
    resolved.links[hop.link].directions[hop.direction as usize].rate
}

/// Largest number of octets of a flow in the network.
fn window(flow: &ResolvedFlow) -> u64 {
    if flow.protocol == Protocol::Tcp {
        let settings = &flow.stack;
        settings
            .send_buffer_bytes()
            .min(settings.receive_window_bytes())
    } else {
        u64::MAX
    }
}

fn meets_unlimited(resolved: &Resolved, flow: &ResolvedFlow) -> bool {
    flow.route.iter().any(|step| match step {
        Step::Link(hop) => {
            let direction = &resolved.links[hop.link].directions[hop.direction as usize];
            let is_unlimited = direction.queue.limit() == Some(Limit::Unlimited)
                && direction.held_limit == Limit::Unlimited;
            direction.rate.is_some() && is_unlimited
        }
        // A gateway's routes are separate links, and the same window bounds their queues.
        Step::Gateway { .. } => false,
    })
}

/// Memory available without swapping, if the system reports it.
fn available_bytes() -> Option<u64> {
    let told = fs::read_to_string("/proc/meminfo").ok()?;
    let line = told
        .lines()
        .find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib * 1024)
}
