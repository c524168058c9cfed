//! The operator's limit of a path's sending rate.

use super::RateControl;

impl RateControl {
    /// The controller of a path that begins again, with the same limit. The octets that arrived in
    /// all count on, because trials of other paths compare their sum over time.
    #[must_use]
    pub fn renewed(&self) -> Self {
        let mut renewed = Self {
            total: self.total,
            ..Self::default()
        };
        renewed.set_limit(self.limit);
        renewed
    }

    /// Limits the sending rate to this number of octets per second.
    pub const fn set_limit(&mut self, limit: f64) {
        self.limit = limit;
        self.rate = self.rate.min(limit);
    }
}
