//! The engine's audit of a run: lateness, losses and load, and whether the results are valid.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex, OnceLock, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use anabranch_core::{
    histogram::Histogram,
    packet::{Direction, FlowId},
    units::{Duration, Instant},
};
use schemars::JsonSchema;
use serde::Serialize;

use crate::{
    apps::{datagram::Stamps, marks::Marks},
    kernel::{clock::Clock, tun::Drops},
};

/// Limits above which a run is tainted.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "LiveLimits", extend("engine" = "live"))]
pub struct Limits {
    /// 99th percentile of the lateness of released packets, and of scheduled writes.
    pub p99_lateness_ms: f64,
    /// Greatest lateness of a packet, and of a scheduled write.
    pub max_lateness_ms: f64,
    /// Packets lost between the kernel and the engine.
    #[schemars(extend("unit" = "packets"))]
    pub io_drops: u64,
}

impl Default for Limits {
    /// `docs/concepts/live.md` gives the reasons for these values.
    fn default() -> Self {
        Self {
            p99_lateness_ms: 2.0,
            max_lateness_ms: 20.0,
            io_drops: 0,
        }
    }
}

/// Counters that are updated while packets pass.
#[derive(Debug, Default)]
pub struct Recorder {
    clock: OnceLock<Clock>,
    /// The current time, if the driver sets it (virtual time).
    said: OnceLock<AtomicU64>,
    counts: Mutex<Counts>,
    /// By flow.
    stamps: Vec<Stamps>,
    marks: Arc<Marks>,
}

#[derive(Debug, Default)]
struct Counts {
    /// Nanoseconds.
    lateness: Histogram<7>,
    taken: u64,
    strangers: u64,
    /// Packets of no flow that were not taken before the end.
    strangers_left: u64,
    merged: u64,
    /// By flow and direction.
    places: Vec<[Place; 2]>,
}

/// The packets of one direction of a flow.
#[derive(Debug, Clone, Copy, Default)]
struct Place {
    taken: u64,
    /// Sent by the host, and not taken before the end.
    left: u64,
    released: u64,
    /// Refused by the kernel.
    undelivered: u64,
    /// Errors of routers, sent to the host that receives these packets.
    answered: u64,
}

impl Recorder {
    /// A recorder for this number of flows.
    pub fn of(flows: usize) -> Self {
        let counts = Counts {
            places: vec![[Place::default(); 2]; flows],
            ..Counts::default()
        };
        Self {
            clock: OnceLock::new(),
            said: OnceLock::new(),
            counts: Mutex::new(counts),
            stamps: (0..flows).map(|_| Stamps::default()).collect(),
            marks: Arc::default(),
        }
    }
    /// Moments at which flows are over.
    pub const fn marks(&self) -> &Arc<Marks> {
        &self.marks
    }
    /// Arrival times of a flow's datagrams at its receiver.
    pub fn stamps(&self, flow: usize) -> Stamps {
        self.stamps[flow].clone()
    }
    pub fn begin(&self, clock: Clock) {
        // Later calls have no effect.
        let _ = self.clock.set(clock);
    }
    /// Sets the time until the next call.
    pub fn is_at(&self, now: Instant) {
        let said = self.said.get_or_init(AtomicU64::default);
        said.store(now.as_picos(), Ordering::Relaxed);
    }
    /// The start on `CLOCK_MONOTONIC`, in nanoseconds; 0 before the start.
    pub fn start_ns(&self) -> u64 {
        self.clock.get().map_or(0, |clock| clock.start_ns())
    }
    fn counts(&self) -> std::sync::MutexGuard<'_, Counts> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }
    /// Records that a packet due at `due` is released now. Returns the present time.
    pub fn release(&self, place: (FlowId, Direction), due: Instant) -> Option<Instant> {
        let now = match self.said.get() {
            Some(picos) => Instant::from_picos(picos.load(Ordering::Relaxed)),
            None => self.clock.get()?.now(),
        };
        let mut counts = self.counts();
        counts.lateness.record(now.saturating_since(due).as_nanos());
        counts.place(place).released += 1;
        Some(now)
    }
    /// Records that the kernel refused a released packet.
    pub fn undelivered(&self, place: (FlowId, Direction)) {
        let mut counts = self.counts();
        let place = counts.place(place);
        place.undelivered += 1;
        place.released -= 1;
    }
    /// Records that the host receiving these packets was notified of a packet that was too big.
    pub fn answered(&self, place: (FlowId, Direction)) {
        self.counts().place(place).answered += 1;
    }
    /// Records that a packet of a flow was taken from the kernel.
    pub fn taken(&self, place: (FlowId, Direction)) {
        let mut counts = self.counts();
        counts.taken += 1;
        counts.place(place).taken += 1;
    }
    /// Records that a packet of a flow was not taken before the end.
    pub fn left(&self, place: (FlowId, Direction)) {
        self.counts().place(place).left += 1;
    }
    /// Records that a packet of no flow was not taken before the end.
    pub fn stranger_left(&self) {
        self.counts().strangers_left += 1;
    }
    /// Records a frame that holds several segments.
    pub fn merged(&self) {
        self.counts().merged += 1;
    }
    /// Records a packet of no flow, which was taken and discarded.
    pub fn stranger(&self) {
        self.counts().strangers += 1;
    }
    /// Counts packets of flows between these nodes that crossed at nodes for which `counts` is
    /// true.
    pub fn crossings(&self, ends: &[[usize; 2]], counts: impl Fn(usize) -> bool) -> Crossings {
        let inner = self.counts();
        let mut found = Crossings {
            foreign: inner.strangers + inner.strangers_left,
            ..Crossings::default()
        };
        for (places, [from, to]) in inner.places.iter().zip(ends) {
            for (place, [from, to]) in places.iter().zip([[from, to], [to, from]]) {
                if counts(*from) {
                    found.taken += place.taken;
                    found.left += place.left;
                }
                if counts(*to) {
                    found.released += place.released;
                    found.undelivered += place.undelivered;
                    found.answered += place.answered;
                }
            }
        }
        found
    }
}

/// Packets that crossed between hosts and the engine in the whole run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Crossings {
    pub taken: u64,
    /// Sent by the host, and not taken before the end.
    pub left: u64,
    /// Packets of no flow.
    pub foreign: u64,
    pub released: u64,
    /// Refused by the kernel.
    pub undelivered: u64,
    /// Errors of routers.
    pub answered: u64,
}

impl Counts {
    fn place(&mut self, (flow, direction): (FlowId, Direction)) -> &mut Place {
        &mut self.places[flow.0 as usize][direction as usize]
    }
}

/// Observations at the end of a run.
#[derive(Debug, Clone, Default)]
pub struct Closing {
    /// Drops of the devices, by node.
    pub devices: Vec<Drops>,
    /// The nodes at both ends of each flow.
    pub nodes: Vec<[usize; 2]>,
    pub in_flight_packets: u64,
    pub cpu_share: f64,
    /// Counts of the two ends of each UDP flow.
    pub ends: Vec<Ends>,
    /// Lateness of scheduled writes of applications, in nanoseconds.
    pub lateness: Histogram<7>,
}

/// The datagrams that the two ends of a UDP flow counted.
#[derive(Debug, Clone)]
pub struct Ends {
    /// The flow's name.
    pub name: String,
    pub flow: FlowId,
    pub written: u64,
    pub read: u64,
}

/// Counts of a flow's datagrams on the way from one program into the network, and from it to the
/// other program.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(extend("engine" = "live"))]
pub struct DatagramAccount {
    /// Datagrams written to the sender's socket.
    #[schemars(extend("unit" = "packets"))]
    pub written: u64,
    /// Written datagrams that the engine took.
    #[schemars(extend("unit" = "packets"))]
    pub taken: u64,
    /// Written datagrams that the engine had not taken at the end.
    #[schemars(extend("unit" = "packets"))]
    pub left: u64,
    /// Datagrams given by the engine to the receiver's kernel.
    #[schemars(extend("unit" = "packets"))]
    pub released: u64,
    /// Datagrams read from the receiver's socket.
    #[schemars(extend("unit" = "packets"))]
    pub read: u64,
}

impl DatagramAccount {
    /// Datagrams lost in the kernel, at the sender's side and at the receiver's.
    const fn missing(&self) -> [u64; 2] {
        [
            self.written.abs_diff(self.taken + self.left),
            self.released.abs_diff(self.read),
        ]
    }
}

/// The live engine's audit of itself.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "LiveAudit", extend("engine" = "live"))]
pub struct Audit {
    /// Whether the run must not be used.
    pub tainted: bool,
    /// Reasons for the taint.
    pub reasons: Vec<String>,
    /// Packets given to hosts.
    pub released_packets: u64,
    /// Packets taken from hosts.
    pub taken_packets: u64,
    /// Packets of no flow, which were dropped: for example neighbour discovery, or a user's
    /// packets.
    pub foreign_packets: u64,
    /// Frames from an interface that hold several segments; each taints the run.
    pub merged_packets: u64,
    /// Packets still in flight when the run ended.
    pub in_flight_packets: u64,
    /// Median lateness of released packets.
    pub p50_lateness_ms: Option<f64>,
    /// 99th percentile of the lateness of released packets.
    pub p99_lateness_ms: Option<f64>,
    /// The greatest lateness of a released packet.
    pub max_lateness_ms: Option<f64>,
    /// Packets lost between the kernel and the engine, or between an application and the kernel. A
    /// lower bound if a device that carries datagrams and other packets lost some, because the kind
    /// of a lost packet is unknown.
    #[schemars(extend("unit" = "packets"))]
    pub io_drops: u64,
    /// Counts of the datagrams of UDP flows, by flow.
    pub datagrams: BTreeMap<String, DatagramAccount>,
    /// Median lateness of scheduled writes of applications.
    pub p50_write_lateness_ms: Option<f64>,
    /// 99th percentile of the lateness of scheduled writes.
    pub p99_write_lateness_ms: Option<f64>,
    /// The greatest lateness of a scheduled write.
    pub max_write_lateness_ms: Option<f64>,
    /// Share of one processor that the engine's thread used.
    pub cpu_share: f64,
    /// The limits that were applied.
    pub limits: Limits,
}

impl Audit {
    /// Computes the audit.
    pub fn of(recorder: &Recorder, limits: Limits, closing: &Closing) -> Self {
        let mut counts = recorder.counts();
        let account = |ends: &Ends| {
            let place = counts.place((ends.flow, Direction::Forward));
            let account = DatagramAccount {
                written: ends.written,
                taken: place.taken,
                left: place.left,
                released: place.released,
                read: ends.read,
            };
            (ends.name.clone(), account)
        };
        let datagrams: BTreeMap<_, _> = closing.ends.iter().map(account).collect();
        let io_drops = lost(&counts, closing, &datagrams);
        let ms = |nanos: u64| Duration::from_nanos(nanos).as_millis_f64();
        let mut audit = Self {
            tainted: false,
            reasons: Vec::new(),
            released_packets: counts.lateness.count(),
            taken_packets: counts.taken,
            foreign_packets: counts.strangers,
            p50_lateness_ms: counts.lateness.percentile(50.0).map(ms),
            p99_lateness_ms: counts.lateness.percentile(99.0).map(ms),
            max_lateness_ms: counts.lateness.max().map(ms),
            merged_packets: counts.merged,
            in_flight_packets: closing.in_flight_packets,
            io_drops,
            datagrams,
            p50_write_lateness_ms: closing.lateness.percentile(50.0).map(ms),
            p99_write_lateness_ms: closing.lateness.percentile(99.0).map(ms),
            max_write_lateness_ms: closing.lateness.max().map(ms),
            cpu_share: closing.cpu_share,
            limits,
        };
        audit.judge();
        audit
    }

    fn judge(&mut self) {
        let Limits {
            p99_lateness_ms,
            max_lateness_ms,
            io_drops,
        } = self.limits;
        let mut reasons = Vec::new();
        if let Some(late) = self.p99_lateness_ms.filter(|late| *late > p99_lateness_ms) {
            reasons.push(format!(
                "one packet in a hundred left more than {late:.3} ms late; the limit is {p99_lateness_ms} ms"
            ));
        }
        if let Some(late) = self.max_lateness_ms.filter(|late| *late > max_lateness_ms) {
            reasons.push(format!(
                "a packet left {late:.3} ms late; the limit is {max_lateness_ms} ms"
            ));
        }
        if let Some(late) = self
            .p99_write_lateness_ms
            .filter(|late| *late > p99_lateness_ms)
        {
            reasons.push(format!(
                "an application wrote one time in a hundred more than {late:.3} ms late; the limit is {p99_lateness_ms} ms"
            ));
        }
        if let Some(late) = self
            .max_write_lateness_ms
            .filter(|late| *late > max_lateness_ms)
        {
            reasons.push(format!(
                "an application wrote {late:.3} ms late; the limit is {max_lateness_ms} ms"
            ));
        }
        if self.io_drops > io_drops {
            reasons.push(format!(
                "{} lost between the kernel and the engine; the limit is {io_drops}",
                match self.io_drops {
                    1 => "1 packet was".to_owned(),
                    n => format!("{n} packets were"),
                }
            ));
        }
        if self.merged_packets > 0 {
            reasons.push(format!(
                "{} frames of several segments came from an interface; switch that off there and at its peer: ethtool -K \
                 INTERFACE gro off gso off tso off",
                self.merged_packets
            ));
        }
        self.tainted = !reasons.is_empty();
        self.reasons = reasons;
    }
}

/// Lost packets, each counted once: a datagram lost by a device is also missing in its flow's
/// account.
fn lost(counts: &Counts, closing: &Closing, datagrams: &BTreeMap<String, DatagramAccount>) -> u64 {
    let hosts = closing
        .nodes
        .iter()
        .flatten()
        .max()
        .map_or(0, |most| most + 1);
    let hosts = hosts.max(closing.devices.len());
    // By node and device.
    let mut known = vec![Drops::default(); hosts];
    for ends in &closing.ends {
        let [from, to] = closing.nodes[ends.flow.0 as usize];
        let [before, after] = datagrams[&ends.name].missing();
        known[from].from_host += before;
        known[to].to_host += after;
    }
    for (places, [from, to]) in counts.places.iter().zip(&closing.nodes) {
        for (place, towards) in places.iter().zip([to, from]) {
            known[*towards].to_host += place.undelivered;
        }
    }
    let none = std::iter::repeat(Drops::default());
    let devices = closing.devices.iter().copied().chain(none);
    let both = known.iter().zip(devices).map(|(known, device)| {
        known.from_host.max(device.from_host) + known.to_host.max(device.to_host)
    });
    both.sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn audit(lateness_ns: &[u64], device_drops: u64, merged: u64) -> Audit {
        let recorder = Recorder::default();
        for late in lateness_ns {
            recorder.counts().lateness.record(*late);
        }
        for _ in 0..merged {
            recorder.merged();
        }
        let closing = Closing {
            devices: vec![Drops {
                from_host: device_drops,
                to_host: 0,
            }],
            ..Closing::default()
        };
        Audit::of(&recorder, Limits::default(), &closing)
    }

    /// `counts`: datagrams of one flow written, taken, left, released and read. `lateness_ns`:
    /// lateness of writes in nanoseconds.
    fn audit_datagrams(counts: [u64; 5], lateness_ns: &[u64]) -> Audit {
        audit_of_hosts(counts, lateness_ns, [(0, 0); 2], 0)
    }

    /// `devices`: packets lost by the devices of the two hosts, from the host and to it.
    /// `undelivered`: packets that a kernel refused.
    fn audit_of_hosts(
        counts: [u64; 5],
        lateness_ns: &[u64],
        devices: [(u64, u64); 2],
        undelivered: u64,
    ) -> Audit {
        let [written, taken, left, released, read] = counts;
        let recorder = Recorder::of(1);
        let flow = FlowId(0);
        *recorder.counts().place((flow, Direction::Forward)) = Place {
            taken,
            left,
            released,
            undelivered,
            answered: 0,
        };
        let mut closing = Closing {
            ends: vec![Ends {
                name: "main".to_owned(),
                flow,
                written,
                read,
            }],
            nodes: vec![[0, 1]],
            devices: devices
                .map(|(from_host, to_host)| Drops { from_host, to_host })
                .to_vec(),
            ..Closing::default()
        };
        for late in lateness_ns {
            closing.lateness.record(*late);
        }
        Audit::of(&recorder, Limits::default(), &closing)
    }

    /// Detects an audit of only one side of the engine.
    #[test]
    fn a_missing_datagram_taints_the_run() {
        assert!(!audit_datagrams([100, 90, 10, 50, 50], &[]).tainted);
        for counts in [[100, 99, 0, 50, 50], [100, 90, 10, 50, 49]] {
            let found = audit_datagrams(counts, &[]);
            assert_eq!(found.io_drops, 1, "{counts:?}");
            assert!(found.tainted, "{counts:?}");
        }
    }

    /// Detects an audit that adds two counts of the same lost packet, and one that uses only one of
    /// the two counts.
    #[test]
    fn each_lost_packet_counts_once() {
        let none = (0, 0);
        for (counts, devices, undelivered, expected) in [
            // Lost at the sender's device, at the receiver's, and at both.
            ([100, 99, 0, 50, 50], [(1, 0), none], 0, 1),
            ([100, 100, 0, 50, 49], [none, (0, 1)], 0, 1),
            ([100, 99, 0, 50, 48], [(1, 0), (0, 2)], 0, 3),
            // Downstream of the device: the socket was full.
            ([100, 100, 0, 50, 45], [none, (0, 2)], 0, 5),
            // A device that also lost other packets, and one that lost only other packets.
            ([100, 99, 0, 50, 50], [(3, 0), none], 0, 3),
            ([100, 99, 0, 50, 50], [none, (4, 0)], 0, 5),
            // Refused by the kernel, with and without a count of the device.
            ([100, 100, 0, 50, 50], [none, (0, 2)], 2, 2),
            ([100, 100, 0, 50, 50], [none, none], 2, 2),
        ] {
            let found = audit_of_hosts(counts, &[], devices, undelivered);
            assert_eq!(found.io_drops, expected, "{counts:?} {devices:?}");
            assert!(found.tainted);
        }
    }

    #[test]
    fn late_writes_taint_the_run() {
        let often: Vec<u64> = (0..1000)
            .map(|n| if n % 50 == 0 { 3_000_000 } else { 1_000 })
            .collect();
        let found = audit_datagrams([0; 5], &often);
        assert_eq!(found.reasons.len(), 1, "{:?}", found.reasons);
        assert!(found.reasons[0].starts_with("an application wrote one time in a hundred"));
        let found = audit_datagrams([0; 5], &[21_000_000]);
        assert!(found.reasons[1].starts_with("an application wrote 21"));
    }

    #[test]
    fn each_limit_taints_separately() {
        let fine = vec![1_000; 1000];
        assert!(!audit(&fine, 0, 0).tainted);
        assert!(!audit(&[], 0, 0).tainted);
        let often_late: Vec<u64> = (0..1000)
            .map(|n| if n % 50 == 0 { 3_000_000 } else { 1_000 })
            .collect();
        let once_late: Vec<u64> = (0..1000)
            .map(|n| if n == 7 { 21_000_000 } else { 1_000 })
            .collect();
        for (name, found, reason) in [
            (
                "p99",
                audit(&often_late, 0, 0),
                "one packet in a hundred left more than 3",
            ),
            ("latest", audit(&once_late, 0, 0), "a packet left 21"),
            ("drops", audit(&fine, 1, 0), "1 packet was lost between"),
            ("merged", audit(&fine, 0, 2), "2 frames of several segments"),
        ] {
            assert!(found.tainted, "{name}");
            assert_eq!(found.reasons.len(), 1, "{name}: {:?}", found.reasons);
            assert!(found.reasons[0].starts_with(reason), "{}", found.reasons[0]);
        }
    }
}
