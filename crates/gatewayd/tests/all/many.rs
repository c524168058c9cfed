//! A gateway with many peers.

use std::{
    fmt::Write as _,
    fs,
    time::{Duration, Instant},
};

use base64::{Engine as _, engine::general_purpose::STANDARD};

use super::namespaces::{Host, hosts, may_run, of_process, ping, wait};

/// The number of other peers.
const PEERS: u32 = 9_999;
/// The most resident memory of a gateway with so many peers that have never been up.
const RESIDENT: u64 = 350 << 20;
/// The time within which a branch comes up, from the start of its daemon.
const UP: Duration = Duration::from_secs(1);
/// Trials: another program may have the processor meanwhile.
const TRIALS: u32 = 5;

/// Adds peers that never come up to a host's configuration.
fn add_peers(host: &Host) {
    let file = host.folder.path().join("gw.toml");
    let mut text = fs::read_to_string(&file).expect("it is there");
    for number in 0..PEERS {
        let mut key = [7; 32];
        key[..4].copy_from_slice(&number.to_be_bytes());
        let [_, _, high, low] = number.to_be_bytes();
        let _ = write!(
            text,
            "[peer.p{number}]\npublic_key = \"{}\"\nallowed = [\"10.128.{high}.{low}\"]\n",
            STANDARD.encode(key)
        );
    }
    fs::write(&file, text).expect("it is written");
}

/// Octets of resident memory.
fn resident(host: &Host) -> u64 {
    let text = of_process(host, "VmRSS");
    let kib: u64 = text.trim_end_matches(" kB").parse().expect("a number");
    kib << 10
}

#[test]
fn a_branch_comes_up_beside_ten_thousand_peers() {
    if !may_run() {
        return;
    }
    let mut hosts = hosts();
    add_peers(&hosts[1]);
    let start = Instant::now();
    hosts[1].start();
    let begun = start.elapsed();
    let before = resident(&hosts[1]);
    let mut best = Duration::MAX;
    for trial in 0..TRIALS {
        let start = Instant::now();
        hosts[0].start();
        wait("the tunnel", || {
            hosts[0].status()["peers"]["other"]["state"] == "up"
        });
        best = best.min(start.elapsed());
        wait("an answer", || ping(&hosts));
        if best <= UP || trial + 1 == TRIALS {
            break;
        }
        assert_eq!(hosts[0].stop(), Some(0));
    }
    let after = resident(&hosts[1]);
    println!(
        "{} peers: started in {begun:?}, a branch up in {best:?}, resident {} kB, then {} kB",
        PEERS + 1,
        before >> 10,
        after >> 10
    );
    assert!(best <= UP, "{best:?}");
    assert!(after <= RESIDENT, "{after}");
}
