//! Numbers within bounds.

use anabranch_core::{bounded, quantity, units::Duration};

bounded! {
    /// CUBIC's scaling constant `C`, in segments per second cubed (RFC 9438 §4.1).
    CubicScale, 0.001..=100.0, "segments per second cubed"
}

bounded! {
    /// The share of the window that remains after a reduction.
    DecreaseFactor, 0.5..=0.99,
    "the share of the window that is kept (where a paper takes 0.2 away, write 0.8)"
}

bounded! {
    /// The share of the window that remains after a reduction by a mark (RFC 8511 §3.1).
    EcnFactor, 0.5..=0.99, "the share of the window that is kept at a mark (RFC 8511: 0.8 to 0.85)"
}

bounded! {
    /// A factor of a rate or a window.
    Gain, 0.1..=10.0, "a gain"
}

bounded! {
    /// `beta` of TCP-PR, in round-trip times.
    Lifetimes, 1.0..=100.0, "how many of the largest recent round-trip times a segment is given"
}

bounded! {
    /// `g` of DCTCP (RFC 8257 §3.3).
    DctcpGain, 0.001..=1.0, "the weight of the last window"
}

bounded! {
    /// The share of a flight that may be lost while the control probes for bandwidth
    /// (draft-ietf-ccwg-bbr §2.8).
    LossThreshold, 0.0..=0.5, "the share of a flight that may be lost"
}

quantity! {
    /// The round-trip time that a control assumes in place of the real one.
    VirtualRtt, Duration, Duration::from_micros(1), Duration::from_secs(1)
}

impl VirtualRtt {
    /// # Panics
    /// If `ms` is 0 or above 1,000; in a `const` this is a compile error.
    #[must_use]
    pub const fn from_millis(ms: u64) -> Self {
        assert!(ms >= 1 && ms <= 1_000, "1..1000 ms");
        Self(Duration::from_millis(ms))
    }
}

bounded! {
    /// A share, from 0 to 1.
    Share, 0.0..=1.0, "a share"
}

bounded! {
    /// The smallest step of BIC's search, in segments per round trip.
    SearchStep, 0.001..=1.0, "segments per round trip"
}
