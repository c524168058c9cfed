//! Long connections: wrapping clocks on the wire, and pauses of weeks.

use crate::support;

use anabranch_core::{body::Length, units::Instant};
use anabranch_tcp::{Profile, Settings, State};
use support::{Link, Net};

const DAY_MS: u64 = 86_400_000;

fn net(profile: &str) -> Net<Length> {
    let settings = Settings {
        timestamps: true,
        ..Profile::named(profile).expect("it exists").settings
    };
    Net::new(&settings, &settings, Link::default(), [5, 77])
}

fn transfer(net: &mut Net<Length>, len: u32) {
    net.ends[0].write_all(Length(len));
    net.flush();
    net.run_until(net.now + anabranch_core::units::Duration::from_secs(20));
}

/// The timestamp clock has 32 bits of milliseconds: 49.7 days.
#[test]
fn a_transfer_goes_on_when_timestamps_wrap() {
    for profile in ["rfc", "linux", "ns3-2018"] {
        let mut net = net(profile);
        net.now = Instant::from_millis((1 << 32) - 200);
        net.open();
        transfer(&mut net, 300_000);
        assert_eq!(net.ends[1].stats().delivered_bytes, 300_000, "{profile}");
        assert_eq!(net.ends[0].stats().retransmitted_packets, 0, "{profile}");
    }
}

/// RFC 7323 §5.5: after 24 days TS.Recent is outdated. Detects stacks that then take every
/// timestamp for old and refuse every segment.
#[test]
fn a_connection_goes_on_after_a_pause_of_weeks() {
    for profile in ["rfc", "linux", "ns3-2018"] {
        for days in [20, 24, 26, 30, 45, 60, 90] {
            let mut net = net(profile);
            net.open();
            transfer(&mut net, 20_000);
            net.run_until(Instant::from_millis(days * DAY_MS));
            transfer(&mut net, 20_000);
            let case = format!("{profile}, {days} days");
            assert_eq!(net.ends[1].stats().delivered_bytes, 40_000, "{case}");
            assert_eq!(net.states(), [State::Established; 2], "{case}");
            assert_eq!(net.ends[0].stats().retransmitted_packets, 0, "{case}");
        }
    }
}

/// PAWS still works: an old segment is refused while the connection is in use.
#[test]
fn an_old_timestamp_is_refused_on_an_active_connection() {
    let mut net = net("rfc");
    net.now = Instant::from_millis(100 * DAY_MS);
    net.open();
    transfer(&mut net, 20_000);
    net.ends[0].write_all(Length(1_000));
    let mut old = net.ends[0].poll_transmit(net.now).expect("data");
    let timestamps = old.segment.timestamps.as_mut().expect("they are on");
    timestamps.value = timestamps.value.wrapping_sub(60_000);
    net.inject(1, &old.segment);
    assert_eq!(net.ends[1].stats().delivered_bytes, 20_000);
}
