//! Shaper: size of a packet on the link below, and departure time of the next packet
//! (Høiland-Jørgensen et al. 2018 §3.1).

use anabranch_core::units::{Bytes, Duration, Instant, Rate};

use super::{Framing, Params};

/// Converts seconds to a bounded duration.
pub(super) fn seconds(s: f64) -> Duration {
    Duration::from_secs_f64(s.clamp(0.0, 1_000.0))
}

/// Truncates a count to an integer.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a float-to-int cast saturates"
)]
pub(super) const fn whole(count: f64) -> u64 {
    count as u64
}

/// Size of packets on the link below.
#[derive(Debug, Clone, Copy)]
pub(super) struct Length {
    overhead: i32,
    mpu: u32,
    framing: Framing,
}

impl Length {
    /// Size on the link of an IP packet of `size` bytes.
    pub fn of(self, size: u32) -> u32 {
        let size = size.saturating_add_signed(self.overhead).max(self.mpu);
        match self.framing {
            Framing::Noatm => size,
            Framing::Atm => size.div_ceil(48).saturating_mul(53),
            Framing::Ptm => size.saturating_add(size.div_ceil(64)),
        }
    }
}

/// A shaper without bursts: a packet may leave when the earlier packets would have been sent at the
/// rate.
#[derive(Debug)]
pub(super) struct Shaper {
    rate: Option<Rate>,
    length: Length,
    held_until: Instant,
}

impl Shaper {
    pub fn new(params: &Params) -> Self {
        Self {
            rate: params.rate.0,
            length: Length {
                overhead: params.overhead.get(),
                mpu: params.mpu.get(),
                framing: params.framing,
            },
            held_until: Instant::START,
        }
    }
    pub fn is_on(&self) -> bool {
        self.rate.is_some()
    }
    pub fn framing(&self) -> Length {
        self.length
    }
    pub fn held_until(&self) -> Instant {
        self.held_until
    }
    /// Charges a packet of this length that leaves.
    pub fn sent(&mut self, now: Instant, length: u32) {
        if let Some(rate) = self.rate {
            let takes = Bytes::new(u64::from(length)) / rate;
            self.held_until = self.held_until.max(now).saturating_add(takes);
        }
    }
}
