//! The TCP of all cases.

use std::sync::Arc;

use anabranch::{
    cc,
    tcp::{DelayedAck, EcnMode, Overrides, Profile, Settings},
};

/// The profile `rfc` (SACK, RFC 6675, buffers that never limit) with an ACK per packet.
pub fn settings(ecn: EcnMode) -> Arc<Settings> {
    settings_of("rfc", ecn)
}

/// A profile with an ACK per packet.
pub fn settings_of(profile: &str, ecn: EcnMode) -> Arc<Settings> {
    let over = Overrides {
        delayed_ack: Some(DelayedAck::Off),
        ecn: Some(ecn),
        ..Overrides::default()
    };
    let profile = Profile::named(profile).expect("a profile of the library");
    Arc::new(
        profile
            .settings
            .with(&over)
            .expect("switches that fit together"),
    )
}

/// CUBIC with its defaults.
pub fn control() -> cc::Config {
    cc::Config::Cubic(cc::cubic::Params::default())
}
