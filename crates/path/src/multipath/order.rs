//! Estimate, from packet numbers, of whether a route preserves order.

/// Share of reordered packets above which a route counts as reordering.
const UNORDERED: f64 = 0.005;
/// Weight of one packet in that share.
const WEIGHT: f64 = 1.0 / 256.0;

/// State of one route.
#[derive(Debug, Default)]
pub(super) struct Order {
    /// Share of packets that arrived after a later one of the same route.
    behind: f64,
}

impl Order {
    /// A packet has arrived. `ahead` is the distance of its number from the highest number before
    /// it.
    pub(super) fn arrived(&mut self, ahead: i16) {
        self.behind += WEIGHT * (f64::from(u8::from(ahead < 0)) - self.behind);
    }
    /// Whether the route preserves order. A single reordered packet keeps the share above
    /// [`UNORDERED`] for about two hundred packets.
    pub(super) fn is_kept(&self) -> bool {
        self.behind < UNORDERED
    }
}
