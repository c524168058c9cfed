//! What the two ends of a gateway count.

use anabranch_core::{histogram::Histogram, units::Duration};

/// What an element of a gateway counted in the measured time.
#[derive(Debug, Clone)]
pub enum Report {
    /// Where packets are spread.
    Split(SplitReport),
    /// Where they are brought together.
    Restore(Box<RestoreReport>),
    /// An end of a tunnel, which does both.
    Tunnel(Box<TunnelReport>),
}

/// What an end of a tunnel counted.
#[derive(Debug, Clone, Default)]
pub struct TunnelReport {
    /// Of the direction in which packets enter here.
    pub sender: TunnelSender,
    /// Of the other direction.
    pub receiver: TunnelReceiver,
}

/// What an end of a tunnel counted of the packets that it sends.
#[derive(Debug, Clone, Default)]
pub struct TunnelSender {
    /// By path.
    pub paths: Vec<TunnelPath>,
    /// Packets that entered.
    pub entered: u64,
    /// Of these, the ones of each class, in the order of the classes.
    pub entered_by_class: Vec<u64>,
    /// Packets that were larger than the tunnel's MTU, or no IP packets.
    pub refused: u64,
    /// Packets that were dropped in the queue before the paths.
    pub queue_dropped: u64,
    /// Packets that no path could carry any more.
    pub unsendable: u64,
    /// Packets that were retransmitted.
    pub retransmitted: u64,
    /// Sessions since the start of the run, the first counted.
    pub sessions: u64,
}

/// What an end of a tunnel counted of a path on which it sends.
#[derive(Debug, Clone, Default)]
pub struct TunnelPath {
    /// Datagrams, those of the tunnel's own counted.
    pub sent_packets: u64,
    /// Octets of their IP packets.
    pub sent_bytes: u64,
    /// Its state at the end.
    pub state: &'static str,
    /// How often it died since the start of the run.
    pub deaths: u64,
    /// Its smoothed round-trip time at the end.
    pub srtt: Option<Duration>,
    /// Octets per second at which it is sent on at the end.
    pub rate: f64,
    /// The largest datagram that it is known to deliver, in octets over UDP.
    pub mtu: usize,
}

/// What an end of a tunnel counted of the packets that it delivers.
#[derive(Debug, Clone, Default)]
pub struct TunnelReceiver {
    /// Packets delivered.
    pub delivered: u64,
    /// Of these, the ones that a later one of their flow had overtaken.
    pub late: u64,
    /// Gaps that were waited for in vain.
    pub gaps_given_up: u64,
    /// Copies of what had arrived already.
    pub duplicates: u64,
    /// The most packets that waited at once since the start of the run.
    pub max_held_packets: u64,
    /// Packets that came out of the tunnel a second time, or that never entered it. A correct tunnel has none.
    pub unmatched: u64,
    /// The longest time without a delivery while packets were in flight.
    pub silent: Duration,
}

/// What was sent over each route.
#[derive(Debug, Clone)]
pub struct SplitReport {
    /// By route: packets, bytes; copies and what the tunnel adds are in them.
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

/// What a restorer held back.
#[derive(Debug, Clone, Default)]
pub struct RestoreReport {
    /// Packets that went on.
    pub released: u64,
    /// Of these, the ones that had waited.
    pub waited: u64,
    /// Of these, the ones that went on because a time had come.
    pub released_by_timer: u64,
    /// Gaps that were waited for in vain.
    pub gaps_given_up: u64,
    /// Copies of what had arrived already.
    pub duplicates: u64,
    /// The most packets that waited at once.
    pub max_held_packets: u64,
    /// The most bytes that waited at once, without what the tunnel added.
    pub max_held_bytes: u64,
    /// The longest time without a delivery while packets were in flight.
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
    /// Mean time that packets waited, those that did not counted too; `None` if none went on.
    #[must_use]
    pub fn mean_wait_ms(&self) -> Option<f64> {
        (self.released > 0).then(|| self.wait_nanos as f64 / 1e6 / self.released as f64)
    }
    /// 95th percentile of the same.
    #[must_use]
    pub fn p95_wait(&self) -> Option<Duration> {
        self.waits.percentile(95.0).map(Duration::from_nanos)
    }
}
