//! The example over UDP: the octets arrive over a path that loses packets, and most losses are
//! repaired without a retransmission.

use std::time::Duration;

use anabranch_fec::Config;
use example::{Path, adaptive, transfer};

#[path = "../../examples/udp_transfer.rs"]
#[allow(dead_code, reason = "the tests call its functions, not its main")]
mod example;

const OCTETS: u32 = 300_000;

fn path(loss: f64) -> Path {
    Path {
        loss,
        delay: Duration::from_millis(5),
        seed: 7,
    }
}

#[test]
fn losses_are_rebuilt() {
    let done = transfer(OCTETS, path(0.03), &adaptive().expect("it is right")).expect("it arrives");
    assert!(done.lost > 0, "the relay lost packets");
    assert!(done.redundant > 0 && done.rebuilt > 0, "{done:?}");
}

#[test]
fn plain_tcp_retransmits() {
    let done = transfer(OCTETS, path(0.03), &Config::Off).expect("it arrives");
    assert!(done.lost > 0 && done.retransmitted > 0, "{done:?}");
    assert_eq!((done.redundant, done.rebuilt), (0, 0));
}
