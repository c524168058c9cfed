//! Helpers of the tests of remedies for reordering.

use anabranch_core::units::{Duration, Instant};
use anabranch_tcp::{
    DelayedAck, Overrides, Profile, Settings,
    remedy::{Choice, Config, Init, Remedy, View},
};

pub const SMSS: u64 = 1000;

/// `flight` segments outstanding, `pipe` of them in flight, under a window of `cwnd`.
pub fn view(cwnd: u64, flight: u64, pipe: u64) -> View {
    View {
        now: Instant::START,
        smss: SMSS,
        cwnd: cwnd * SMSS,
        flight_size: flight * SMSS,
        pipe: pipe * SMSS,
        srtt: Duration::from_millis(100),
        rto: Duration::from_millis(300),
    }
}

pub fn build(config: &Config) -> Remedy {
    config.build(&Init { dupthresh: 3 })
}

/// Profile `rfc` with this remedy, segments of 1,000 octets, each acknowledged.
pub fn settings(config: &Config) -> Settings {
    let over = Overrides {
        reordering: Some(Choice(config.clone())),
        ..Overrides::default()
    };
    let rfc = Profile::named("rfc").expect("it exists").settings;
    Settings {
        mss: 1000,
        delayed_ack: DelayedAck::Off,
        ..rfc.with(&over).expect("rfc has all that is needed")
    }
}
