//! Counters of the two ends of a gateway.

use anabranch_core::{histogram::Histogram, units::Duration};

/// Counters of a gateway's element in the measured time.
#[derive(Debug, Clone)]
pub enum Report {
    /// Split: distributes packets over routes.
    Split(SplitReport),
    /// Restore: merges the routes.
    Restore(Box<RestoreReport>),
    /// End of a tunnel, which does both.
    Tunnel(Box<TunnelReport>),
}

/// Counters of a tunnel's end.
#[derive(Debug, Clone, Default)]
pub struct TunnelReport {
    /// Direction in which packets enter at this end.
    pub sender: TunnelSender,
    /// Opposite direction.
    pub receiver: TunnelReceiver,
}

/// Counters of a tunnel's end for the packets that it sends.
#[derive(Debug, Clone, Default)]
pub struct TunnelSender {
    /// By path.
    pub paths: Vec<TunnelPath>,
    /// Packets that entered.
    pub entered: u64,
    /// Packets that entered, by class.
    pub entered_by_class: Vec<u64>,
    /// Packets that exceeded the tunnel's MTU or were not IP packets.
    pub refused: u64,
    /// Packets dropped in the queue before the paths.
    pub queue_dropped: u64,
    /// Packets that no path could carry any more.
    pub unsendable: u64,
    /// Packets retransmitted.
    pub retransmitted: u64,
    /// Sessions since the start of the run, including the first.
    pub sessions: u64,
}

/// Counters of a tunnel's end for a path on which it sends.
#[derive(Debug, Clone, Default)]
pub struct TunnelPath {
    /// Datagrams, including the tunnel's own.
    pub sent_packets: u64,
    /// Octets of their IP packets.
    pub sent_bytes: u64,
    /// State at the end.
    pub state: &'static str,
    /// Number of failures since the start of the run.
    pub deaths: u64,
    /// Smoothed round-trip time at the end.
    pub srtt: Option<Duration>,
    /// Sending rate at the end, in octets per second.
    pub rate: f64,
    /// Largest datagram known to be delivered, in octets over UDP.
    pub mtu: usize,
}

/// Counters of a tunnel's end for the packets that it delivers.
#[derive(Debug, Clone, Default)]
pub struct TunnelReceiver {
    /// Packets delivered.
    pub delivered: u64,
    /// Delivered packets that a later packet of their flow had overtaken.
    pub late: u64,
    /// Gaps abandoned after a wait.
    pub gaps_given_up: u64,
    /// Copies of packets that had already arrived.
    pub duplicates: u64,
    /// Maximum number of packets waiting at once since the start of the run.
    pub max_held_packets: u64,
    /// Packets that left the tunnel a second time, or that never entered it. A correct tunnel has
    /// none.
    pub unmatched: u64,
    /// Longest time without a delivery while packets were in flight.
    pub silent: Duration,
}

/// Traffic over each route.
#[derive(Debug, Clone)]
pub struct SplitReport {
    /// Packets and bytes by route, including copies and tunnel overhead.
    pub routes: Vec<(u64, u64)>,
}

impl SplitReport {
    pub(super) fn new(routes: usize) -> Self {
        Self {
            routes: vec![(0, 0); routes],
        }
    }
    pub(super) fn sent(&mut self, route: u16, size: u32) {
        let (packets, bytes) = &mut self.routes[usize::from(route)];
        *packets += 1;
        *bytes += u64::from(size);
    }
}

/// Counters of a restorer.
#[derive(Debug, Clone, Default)]
pub struct RestoreReport {
    /// Packets released.
    pub released: u64,
    /// Released packets that had waited.
    pub waited: u64,
    /// Waiting packets released by a timer.
    pub released_by_timer: u64,
    /// Gaps abandoned after a wait.
    pub gaps_given_up: u64,
    /// Copies of packets that had already arrived.
    pub duplicates: u64,
    /// Maximum number of packets waiting at once.
    pub max_held_packets: u64,
    /// Maximum number of bytes waiting at once, without tunnel overhead.
    pub max_held_bytes: u64,
    /// Longest time without a delivery while packets were in flight.
    pub silent: Duration,
    waits: Histogram,
    wait_nanos: u64,
}

impl RestoreReport {
    pub(super) fn released(&mut self, waited: Duration) {
        self.released += 1;
        self.waited += u64::from(!waited.is_zero());
        self.waits.record(waited.as_nanos());
        self.wait_nanos += waited.as_nanos();
    }
    pub(super) fn holds(&mut self, packets: u64, bytes: u64) {
        self.max_held_packets = self.max_held_packets.max(packets);
        self.max_held_bytes = self.max_held_bytes.max(bytes);
    }
    /// Mean waiting time of all released packets; `None` if there are none.
    #[must_use]
    pub fn mean_wait_ms(&self) -> Option<f64> {
        (self.released > 0).then(|| self.wait_nanos as f64 / 1e6 / self.released as f64)
    }
    /// 95th percentile of the waiting time.
    #[must_use]
    pub fn p95_wait(&self) -> Option<Duration> {
        self.waits.percentile(95.0).map(Duration::from_nanos)
    }
}
