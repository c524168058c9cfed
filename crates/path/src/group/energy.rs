//! Power consumption of ports.
//!
//! A port is in one of four states, each with a power: it sends (active), is awake without sending
//! (idle), sleeps, or wakes up. Both ends of a link have a port; each is active while it sends.
//! Energy is the sum of power × time over all ports.
//!
//! Sources of the defaults: 0.5 W for a gigabit port that is on and 50 mW for a resting port are
//! Intel's figures at the time of IEEE 802.3az (G. Cox, cited in "Energy Efficient Ethernet: IEEE
//! 802.3az Defined", Enterprise Networking Planet, 2010). Three assumptions are from K. Christensen
//! et al., "IEEE 802.3az: The Road to Energy Efficient Ethernet", IEEE Communications Magazine
//! 48(11), 2010: a port without low-power idle draws the same power when it sends nothing, resting
//! takes a tenth, and transitions draw the power of sending.
//!
//! # Not implemented
//! - Power of a switch other than its ports, which is the larger part.
//! - Power that depends on the rate or on the size of packets.

use anabranch_core::units::{Duration, Power};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The power of one port in each state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct PowerModel {
    /// While it sends.
    pub active: Power,
    /// While it is awake and does not send.
    pub idle: Power,
    /// While it sleeps, or rests in low-power idle.
    pub sleeping: Power,
    /// While it wakes up.
    pub waking: Power,
}

impl Default for PowerModel {
    fn default() -> Self {
        Self {
            active: Power::from_milliwatts(500),
            idle: Power::from_milliwatts(500),
            sleeping: Power::from_milliwatts(50),
            waking: Power::from_milliwatts(500),
        }
    }
}

/// Time of a port in each state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PortTimes {
    /// Sending.
    pub active: Duration,
    /// Awake, and not sending.
    pub idle: Duration,
    /// Sleeping or resting.
    pub sleeping: Duration,
    /// Waking up.
    pub waking: Duration,
}

impl PortTimes {
    /// Total time.
    #[must_use]
    pub fn total(&self) -> Duration {
        self.active + self.idle + self.sleeping + self.waking
    }
}

impl PowerModel {
    /// Energy of a port in joules.
    #[must_use]
    pub fn joules(&self, times: &PortTimes) -> f64 {
        self.active.joules(times.active)
            + self.idle.joules(times.idle)
            + self.sleeping.joules(times.sleeping)
            + self.waking.joules(times.waking)
    }
}
