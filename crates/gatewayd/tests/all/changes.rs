//! Changes while gateways are up: configuration, interfaces, carriers and addresses.

use std::fs;

use landlock::{
    ABI, Access as _, AccessFs, CompatLevel, Compatible as _, Ruleset, RulesetAttr as _,
};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use super::namespaces::{GATEWAY, Host, both_up, content, may_run, ping, transfer, wait};

pub fn file(host: &Host) -> String {
    fs::read_to_string(host.folder.path().join("gw.toml")).expect("it is there")
}

pub fn write(host: &Host, text: &str) {
    fs::write(host.folder.path().join("gw.toml"), text).expect("it is written");
}

pub fn reload(host: &Host) -> (Option<i32>, String) {
    let mut command = host.command(GATEWAY);
    let done = command
        .args(["reload", "gw.toml"])
        .output()
        .expect("it runs");
    (done.status.code(), super::text(&done.stderr))
}

pub fn peer(host: &Host) -> Value {
    host.status()["peers"]["other"].clone()
}

pub fn state(host: &Host, path: &str) -> String {
    peer(host)["paths"][path]["state"]
        .as_str()
        .unwrap_or_default()
        .to_owned()
}

/// Sessions and restarts that the other end has counted: another tunnel at this end would be a restart.
fn seen_by_the_other(host: &Host) -> [Value; 2] {
    let seen = peer(host);
    ["sessions", "restarts"].map(|count| seen[count].clone())
}

#[test]
#[ignore = "needs a kernel in virtual time: make kernel test-kernel"]
fn a_path_is_removed_and_added_during_a_transfer() {
    let hosts = both_up();
    wait("both paths", || {
        state(&hosts[0], "one") == "active" && state(&hosts[0], "two") == "active"
    });
    let sessions = seen_by_the_other(&hosts[1]);
    let whole = file(&hosts[0]);
    let without = whole.replace("[path.two]\ninterface = \"w2\"\n", "");
    assert_ne!(whole, without);
    let change = || {
        write(&hosts[0], &without);
        assert_eq!(reload(&hosts[0]), (Some(0), String::new()));
        // A path that stays without a name would have its number.
        let paths = peer(&hosts[0])["paths"].clone();
        let names = paths
            .as_object()
            .map(|paths| paths.keys().cloned().collect::<Vec<_>>());
        assert_eq!(names, Some(vec!["one".to_owned()]));
    };
    assert!(transfer(&hosts, change) == content(), "the content differs");
    write(&hosts[0], &whole);
    assert_eq!(reload(&hosts[0]).0, Some(0));
    wait("the path", || state(&hosts[0], "two") == "active");
    assert_eq!(state(&hosts[0], "one"), "active");
    assert_eq!(seen_by_the_other(&hosts[1]), sessions);
    assert!(ping(&hosts));
}

#[test]
#[ignore = "needs a kernel in virtual time: make kernel test-kernel"]
fn a_wrong_file_changes_nothing() {
    let hosts = both_up();
    wait("an answer", || ping(&hosts));
    let whole = file(&hosts[0]);
    let before = seen_by_the_other(&hosts[1]);
    let cases = [
        (
            "interface = \"w2\"",
            "interfaec = \"w2\"",
            2,
            "did you mean",
        ),
        ("10.9.0.1/24", "10.9.0.7/24", 1, "needs a restart"),
        (
            "10.2.0.2:51900",
            "no-such-name.invalid:51900",
            1,
            "no-such-name",
        ),
    ];
    for (part, instead, code, said) in cases {
        let wrong = whole.replace(part, instead);
        assert_ne!(wrong, whole);
        write(&hosts[0], &wrong);
        let (status, told) = reload(&hosts[0]);
        assert_eq!(status, Some(code), "{told}");
        assert!(told.contains(said), "{told}");
        let gateway = hosts[0].gateway.as_ref().expect("it is up");
        kill_process(Pid::from_child(gateway), Signal::HUP).expect("it is ours");
    }
    write(&hosts[0], &whole);
    for path in ["one", "two"] {
        wait("the path", || state(&hosts[0], path) == "active");
    }
    assert_eq!(seen_by_the_other(&hosts[1]), before);
    assert!(ping(&hosts));
}

fn has_landlock() -> bool {
    let ruleset = Ruleset::default().set_compatibility(CompatLevel::HardRequirement);
    ruleset.handle_access(AccessFs::from_all(ABI::V3)).is_ok()
}

/// Detects a daemon without Landlock: the command may read the key, but the daemon may not.
#[test]
fn a_reload_reads_no_file_elsewhere() {
    if !may_run() || !has_landlock() {
        return;
    }
    let hosts = both_up();
    wait("an answer", || ping(&hosts));
    let elsewhere = super::folder();
    let key = elsewhere.path().join("key");
    let whole = file(&hosts[0]);
    let with_key = format!("[peer.other]\npreshared_key_file = {:?}\n", key.display());
    write(&hosts[0], &whole.replace("[peer.other]\n", &with_key));
    let (status, told) = reload(&hosts[0]);
    assert_eq!(status, Some(1), "{told}");
    assert!(told.contains("Permission denied"), "{told}");
    assert!(ping(&hosts));
}

#[test]
#[ignore = "needs a kernel in virtual time: make kernel test-kernel"]
fn peers_are_added_and_removed_and_others_keep_their_sessions() {
    let hosts = both_up();
    wait("an answer", || ping(&hosts));
    let whole = file(&hosts[0]);
    let sessions = seen_by_the_other(&hosts[1]);
    let more = format!(
        "{whole}[peer.third]\npublic_key = \"{}\"\nallowed = [\"10.77.0.0/16\"]\nendpoints = [\"10.1.0.9:51900\"]\n",
        super::PUBLIC
    );
    write(&hosts[0], &more);
    assert_eq!(reload(&hosts[0]), (Some(0), String::new()));
    let routes = || {
        let mut command = hosts[0].command("ip");
        super::text(&command.args(["route"]).output().expect("it runs").stdout)
    };
    assert!(
        routes().contains("10.77.0.0/16 dev anabranch0"),
        "{}",
        routes()
    );
    assert_eq!(hosts[0].status()["peers"]["third"]["state"], "down");
    write(&hosts[0], &whole);
    assert_eq!(reload(&hosts[0]).0, Some(0));
    assert!(!routes().contains("10.77"), "{}", routes());
    assert!(hosts[0].status()["peers"].get("third").is_none());
    assert_eq!(seen_by_the_other(&hosts[1]), sessions);
    assert!(ping(&hosts));
}

#[test]
#[ignore = "needs a kernel in virtual time: make kernel test-kernel"]
fn a_path_follows_its_interface() {
    let hosts = both_up();
    wait("both paths", || {
        state(&hosts[0], "one") == "active" && state(&hosts[0], "two") == "active"
    });
    hosts[1].ip(&["link", "set", "w2", "down"]);
    wait("the loss of the carrier", || {
        state(&hosts[0], "two") == "dead"
    });
    hosts[1].ip(&["link", "set", "w2", "up"]);
    wait("the path's return", || state(&hosts[0], "two") == "active");
    // Like a modem that is reset.
    hosts[0].ip(&["link", "del", "w2"]);
    wait("the death of the path", || {
        state(&hosts[0], "two") == "dead"
    });
    let there = hosts[1].space.id().to_string();
    hosts[0].ip(&[
        "link", "add", "w2", "type", "veth", "peer", "name", "w2", "netns", &there,
    ]);
    for (host, address) in hosts.iter().zip(["10.2.0.1/24", "10.2.0.2/24"]) {
        host.ip(&["addr", "add", address, "dev", "w2"]);
        host.ip(&["link", "set", "w2", "up"]);
    }
    wait("the path's return", || state(&hosts[0], "two") == "active");
    hosts[0].ip(&["addr", "del", "10.2.0.1/24", "dev", "w2"]);
    hosts[0].ip(&["addr", "add", "10.2.0.77/24", "dev", "w2"]);
    wait("the new address", || state(&hosts[0], "two") == "active");
    hosts[1].ip(&["link", "set", "w1", "down"]);
    wait("the death of the other", || {
        state(&hosts[0], "one") == "dead"
    });
    wait("an answer", || ping(&hosts));
}

/// The kernel would repeat a request for a link-layer address only a second later, whenever the
/// carrier returns.
#[test]
#[ignore = "needs a kernel in virtual time: make kernel test-kernel"]
fn an_interface_without_carrier_sends_nothing() {
    let hosts = both_up();
    wait("both paths", || {
        state(&hosts[0], "one") == "active" && state(&hosts[0], "two") == "active"
    });
    hosts[1].ip(&["link", "set", "w2", "down"]);
    wait("the loss of the carrier", || {
        state(&hosts[0], "two") == "dead"
    });
    // Dead paths are probed each 100 ms.
    std::thread::sleep(std::time::Duration::from_millis(500));
    let mut command = hosts[0].command("ip");
    let done = command.args(["neigh", "show", "dev", "w2"]);
    let neighbours = super::text(&done.output().expect("it runs").stdout);
    for state in ["INCOMPLETE", "FAILED"] {
        assert!(!neighbours.contains(state), "{neighbours}");
    }
    hosts[1].ip(&["link", "set", "w2", "up"]);
    wait("the path's return", || state(&hosts[0], "two") == "active");
}

#[test]
#[ignore = "needs a kernel in virtual time: make kernel test-kernel"]
fn an_absent_interface_is_reported() {
    let mut hosts = super::namespaces::hosts();
    let wrong = file(&hosts[0]).replace("\"w2\"", "\"w9\"");
    write(&hosts[0], &wrong);
    let mut command = hosts[0].command(GATEWAY);
    let done = command
        .args(["check", "gw.toml"])
        .output()
        .expect("it runs");
    assert_eq!(done.status.code(), Some(0));
    let told = super::text(&done.stderr);
    let remark = "remark: path two: there is no interface `w9` now; there are: lo, w1, w2\n";
    assert_eq!(told, remark);
    hosts[0].start();
    let paths = peer(&hosts[0])["paths"].clone();
    assert_eq!(paths["two"]["reason"], "no interface w9");
    assert_eq!(paths["one"]["reason"], Value::Null);
    let shown = super::text(&hosts[0].ask(&[]).stdout);
    assert!(shown.contains("  no interface w9\n"), "{shown}");
}

#[test]
#[ignore = "needs a kernel in virtual time: make kernel test-kernel"]
fn an_interface_that_is_added_later_starts_its_path() {
    let mut hosts = super::namespaces::hosts();
    let whole = file(&hosts[0]);
    write(
        &hosts[0],
        &format!("{whole}[path.late]\ninterface = \"w3\"\n"),
    );
    for host in &mut hosts {
        host.start();
    }
    wait("an answer", || ping(&hosts));
    let there = hosts[1].space.id().to_string();
    hosts[0].ip(&[
        "link", "add", "w3", "type", "veth", "peer", "name", "w3", "netns", &there,
    ]);
    // The third path leads to the first endpoint, which is also reachable over this link.
    hosts[0].ip(&["addr", "add", "10.3.0.1/24", "dev", "w3"]);
    hosts[1].ip(&["addr", "add", "10.3.0.2/24", "dev", "w3"]);
    for host in &hosts {
        host.ip(&["link", "set", "w3", "up"]);
    }
    hosts[0].ip(&[
        "route",
        "add",
        "10.1.0.2/32",
        "via",
        "10.3.0.2",
        "dev",
        "w3",
        "metric",
        "9",
    ]);
    wait("the path", || state(&hosts[0], "late") == "active");
}

/// A next hop that the kernel probes during an outage is given up, and requested again only once
/// per second. Therefore the daemon confirms to the kernel that the next hop is reachable.
#[test]
#[ignore = "needs a kernel in virtual time: make kernel test-kernel"]
fn the_next_hop_of_a_path_that_delivers_stays_reachable() {
    let mut hosts = super::namespaces::hosts();
    let time = "/proc/sys/net/ipv4/neigh/w1/base_reachable_time_ms";
    let shorten = hosts[0].inside(move || fs::write(time, "2000"));
    shorten.join().expect("no panic").expect("root");
    for host in &mut hosts {
        host.start();
    }
    wait("both paths", || {
        state(&hosts[0], "one") == "active" && state(&hosts[0], "two") == "active"
    });
    let is_reachable = || {
        let mut command = hosts[0].command("ip");
        let done = command.args(["neigh", "show", "dev", "w1"]);
        super::text(&done.output().expect("it runs").stdout).contains("REACHABLE")
    };
    std::thread::sleep(std::time::Duration::from_secs(4));
    let samples = (0..20).filter(|_| {
        std::thread::sleep(std::time::Duration::from_millis(100));
        is_reachable()
    });
    // Without confirmation the kernel stops trusting the entry after two seconds, and waits five
    // more before it probes.
    assert!(samples.count() >= 15);
}
