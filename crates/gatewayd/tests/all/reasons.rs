//! The reasons why a path does not deliver, in `check`, status, metrics and log.

use std::{fs, os::unix::fs::PermissionsExt};

use super::{
    changes::{file, peer, reload, state, write},
    namespaces::{GATEWAY, Host, hosts, wait},
    servers::metrics,
};

/// An address of the second host beyond its links.
const BEYOND: &str = "10.3.0.2";

fn beyond(hosts: &[Host; 2]) {
    hosts[1].ip(&["addr", "add", &format!("{BEYOND}/32"), "dev", "lo"]);
    // Without a route the kernel takes any address for a neighbour.
    set(&hosts[1], "ipv4/conf/all/arp_ignore", "1");
    let text = file(&hosts[0]).replace("10.1.0.2:51900", &format!("{BEYOND}:51900"));
    write(&hosts[0], &text.replace(", \"10.2.0.2:51900\"", ""));
}

fn set(host: &Host, name: &'static str, value: &'static str) {
    let written = host.inside(move || fs::write(format!("/proc/sys/net/{name}"), value));
    written.join().expect("no panic").expect("root");
}

fn remarks(host: &Host) -> String {
    let mut command = host.command(GATEWAY);
    let done = command.args(["check", "gw.toml"]).output();
    super::text(&done.expect("it runs").stderr)
}

fn cause(host: &Host, path: &str) -> String {
    let peer = peer(host);
    let cause = peer["paths"][path]["cause"].as_str();
    cause.unwrap_or_default().to_owned()
}

/// Waits until all outputs of the daemon have a path's reason.
fn is_reported(host: &Host, path: &str, code: &'static str, reason: &str) {
    wait(reason, || cause(host, path) == code);
    assert_eq!(peer(host)["paths"][path]["reason"], reason);
    let shown = super::text(&host.ask(&[]).stdout);
    assert!(shown.contains(&format!("  {reason}\n")), "{shown}");
    // The status has the state of an interface at once, the log at the next check.
    let line = format!("peer other: path {path}: {reason}\n");
    wait("the log", || host.log().contains(&line));
    let sample = format!(
        "anabranch_gateway_path_cause{{peer=\"other\",path=\"{path}\",cause=\"{code}\"}} 1\n"
    );
    let answer = metrics(host);
    assert!(answer.contains(&sample), "{answer}");
}

#[test]
#[ignore = "needs a kernel in virtual time: make kernel test-kernel"]
fn a_missing_route_is_reported() {
    let mut hosts = hosts();
    beyond(&hosts);
    hosts[0].ip(&["route", "add", "default", "via", "10.1.0.2"]);
    let reason = format!("no route to {BEYOND} by w2");
    assert_eq!(remarks(&hosts[0]), format!("remark: path two: {reason}\n"));
    for host in &mut hosts {
        host.start();
    }
    is_reported(&hosts[0], "two", "no_route", &reason);
    wait("the path", || state(&hosts[0], "one") == "active");
    assert_eq!(cause(&hosts[0], "one"), "");
    // The route of a DHCP client that comes late.
    let late = ["route", "add", "default", "via", "10.2.0.2", "metric", "9"];
    hosts[0].ip(&late);
    wait("the path", || state(&hosts[0], "two") == "active");
    assert_eq!(cause(&hosts[0], "two"), "");
}

#[test]
#[ignore = "needs a kernel in virtual time: make kernel test-kernel"]
fn a_missing_family_is_reported() {
    let mut hosts = hosts();
    hosts[0].ip(&["addr", "flush", "dev", "w2"]);
    let reason = "w2 has no IPv4 address for 10.2.0.2";
    assert!(remarks(&hosts[0]).starts_with("remark: path two: w2 has no IPv4 address for 10."));
    let text = file(&hosts[0]).replace("\"10.1.0.2:51900\", ", "");
    write(
        &hosts[0],
        &text.replace("[path.one]\ninterface = \"w1\"\n", ""),
    );
    for host in &mut hosts {
        host.start();
    }
    is_reported(&hosts[0], "two", "wrong_family", reason);
}

#[test]
#[ignore = "needs a kernel in virtual time: make kernel test-kernel"]
fn a_strict_reverse_path_filter_is_reported() {
    let mut hosts = hosts();
    beyond(&hosts);
    for (link, metric) in [("1", "1"), ("2", "2")] {
        let gateway = format!("10.{link}.0.2");
        hosts[0].ip(&["route", "add", "default", "via", &gateway, "metric", metric]);
    }
    set(&hosts[0], "ipv4/conf/w2/rp_filter", "1");
    let reason = format!(
        "the reverse path filter of w2 drops answers: the route to {BEYOND} leads over w1; \
         sysctl net.ipv4.conf.w2.rp_filter=2"
    );
    assert_eq!(remarks(&hosts[0]), format!("remark: path two: {reason}\n"));
    // Answers come from the address that is asked.
    hosts[1].ip(&[
        "route",
        "replace",
        "10.2.0.0/24",
        "dev",
        "w2",
        "src",
        BEYOND,
    ]);
    // Reports about the second path would come back on the first.
    let text = file(&hosts[0]).replace("[path.one]\ninterface = \"w1\"\n", "");
    write(&hosts[0], &text);
    for host in &mut hosts {
        host.start();
    }
    is_reported(&hosts[0], "two", "reverse_path_filter", &reason);
    set(&hosts[0], "ipv4/conf/w2/rp_filter", "2");
    wait("the path", || state(&hosts[0], "two") == "active");
}

#[test]
#[ignore = "needs a kernel in virtual time: make kernel test-kernel"]
fn a_port_without_gateway_is_reported() {
    let mut hosts = hosts();
    hosts[0].start();
    let reason = "no gateway listens at 10.1.0.2:51900";
    is_reported(&hosts[0], "one", "port_closed", reason);
    hosts[1].start();
    wait("the path", || state(&hosts[0], "one") == "active");
    assert_eq!(cause(&hosts[0], "one"), "");
}

/// Handles the second host's UDP on the first link by a rule.
fn filter(hosts: &[Host; 2], action: &str) {
    hosts[1].ip(&["rule", "add", "pref", "100", "lookup", "local"]);
    hosts[1].ip(&["rule", "del", "pref", "0"]);
    let rule = ["rule", "add", "pref", "10", "iif", "w1", "ipproto", "udp"];
    hosts[1].ip(&[&rule[..], &[action]].concat());
}

#[test]
#[ignore = "needs a kernel in virtual time: make kernel test-kernel"]
fn a_router_that_forbids_udp_is_reported() {
    let mut hosts = hosts();
    set(&hosts[1], "ipv4/ip_forward", "1");
    filter(&hosts, "prohibit");
    for host in &mut hosts {
        host.start();
    }
    let reason = "10.1.0.2 forbids datagrams to 10.1.0.2";
    is_reported(&hosts[0], "one", "prohibited", reason);
    wait("the other path", || state(&hosts[0], "two") == "active");
    // ICMP messages fail a call of the kernel each, which loses no datagram of the other path.
    assert_eq!(hosts[0].status()["dropped"]["not_sent"], 0);
}

#[test]
#[ignore = "needs a kernel in virtual time: make kernel test-kernel"]
fn silence_while_other_paths_deliver_is_reported() {
    let mut hosts = hosts();
    filter(&hosts, "blackhole");
    for host in &mut hosts {
        host.start();
    }
    let reason =
        "no answer from 10.1.0.2:51900, although other paths deliver: is UDP blocked on the way?";
    is_reported(&hosts[0], "one", "silent", reason);
    wait("the other path", || state(&hosts[0], "two") == "active");
}

#[test]
#[ignore = "needs a kernel in virtual time: make kernel test-kernel"]
fn an_interface_that_is_set_down_is_told_from_one_without_carrier() {
    let mut hosts = hosts();
    for host in &mut hosts {
        host.start();
    }
    wait("the path", || state(&hosts[0], "two") == "active");
    // The far end of the cable, then this one.
    for (end, code, reason, remark) in [
        (1, "no_carrier", "no carrier", "has no carrier"),
        (0, "interface_down", "w2 is set down", "is set down"),
    ] {
        hosts[end].ip(&["link", "set", "w2", "down"]);
        wait(reason, || cause(&hosts[0], "two") == code);
        assert_eq!(peer(&hosts[0])["paths"]["two"]["reason"], reason);
        let shown = super::text(&hosts[0].ask(&[]).stdout);
        assert!(shown.contains(&format!("  {reason}\n")), "{shown}");
        let remark = format!("remark: path two: `w2` {remark} now\n");
        assert_eq!(remarks(&hosts[0]), remark);
    }
    let line = "path two: its interface, address or carrier has gone: no carrier\n";
    assert!(hosts[0].log().contains(line), "{}", hosts[0].log());
    for host in &hosts {
        host.ip(&["link", "set", "w2", "up"]);
    }
    wait("the path", || state(&hosts[0], "two") == "active");
    assert_eq!(cause(&hosts[0], "two"), "");
}

/// Gives a host a pre-shared key.
fn share(host: &Host, key: &str) {
    let path = host.folder.path().join("psk");
    fs::write(&path, key).expect("ours");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).expect("ours");
    let text = file(host).replace("allowed", "preshared_key_file = \"psk\"\nallowed");
    write(host, &text);
}

#[test]
#[ignore = "needs a kernel in virtual time: make kernel test-kernel"]
fn differing_preshared_keys_are_reported_at_both_ends() {
    let mut hosts = hosts();
    share(&hosts[0], super::PRIVATE);
    share(&hosts[1], super::PUBLIC);
    for host in &mut hosts {
        host.start();
    }
    let reason = "its answers cannot be opened: the pre-shared keys of the two ends differ";
    is_reported(&hosts[0], "one", "preshared_key", reason);
    let far = "it repeats its handshake although it was answered: the pre-shared keys of the two \
               ends differ, or the answers do not reach it";
    wait("the far end", || {
        peer(&hosts[1])["cause"] == "answers_in_vain"
    });
    for (host, cause, reason) in [
        (&hosts[0], "preshared_key", reason),
        (&hosts[1], "answers_in_vain", far),
    ] {
        let seen = peer(host);
        assert_eq!(
            (&seen["cause"], &seen["reason"]),
            (&cause.into(), &reason.into())
        );
        let shown = super::text(&host.ask(&[]).stdout);
        assert!(shown.contains(&format!("\n  {reason}\n")), "{shown}");
        let sample = format!("peer_cause{{peer=\"other\",cause=\"{cause}\"}} 1\n");
        assert!(metrics(host).contains(&sample), "{}", metrics(host));
        let line = format!("peer other: {reason}");
        let count = host.log().lines().filter(|one| *one == line).count();
        assert_eq!(count, 1, "{}", host.log());
    }
    // The right key.
    fs::write(hosts[0].folder.path().join("psk"), super::PUBLIC).expect("ours");
    assert_eq!(reload(&hosts[0]), (Some(0), String::new()));
    wait("the path", || state(&hosts[0], "one") == "active");
    for host in &hosts {
        assert_eq!(peer(host)["reason"], serde_json::Value::Null);
    }
}
