//! Whether a route keeps the order of its packets, as its numbers tell.

/// Share of packets of a route that come behind a later one of the same route, above which the route keeps no order.
const UNORDERED: f64 = 0.005;
/// Weight of one packet in that share.
const WEIGHT: f64 = 1.0 / 256.0;

/// What is known of one route.
#[derive(Debug, Default)]
pub(super) struct Order {
    /// Share of its packets that came behind a later one.
    behind: f64,
}

impl Order {
    /// A packet has arrived whose number is so far ahead of the highest before it.
    pub(super) fn arrived(&mut self, ahead: i16) {
        self.behind += WEIGHT * (f64::from(u8::from(ahead < 0)) - self.behind);
    }
    /// Whether it keeps order. A single packet that came late is more than [`UNORDERED`] for about two hundred others.
    pub(super) fn is_kept(&self) -> bool {
        self.behind < UNORDERED
    }
}
