//! Data caps: counts, alarms, the use of a path at its cap, and the file of the counts.

use std::{fs, os::unix::fs::PermissionsExt, time::Duration};

use super::{
    changes::{file, reload, state, write},
    namespaces::{Host, hosts, ping, transfer, wait},
};

/// Two hosts, the first with a cap on the path `two`.
fn hosts_with(two: &str) -> [Host; 2] {
    let hosts = hosts();
    let text = file(&hosts[0]);
    let text = text.replace(
        "interface = \"w2\"\n",
        &format!("interface = \"w2\"\n{two}\n"),
    );
    // Without a limit the first path may carry everything: the links have no rate.
    let text = text.replace(
        "interface = \"w1\"\n",
        "interface = \"w1\"\nmax_rate = \"20 Mbit/s\"\n",
    );
    let text = text.replace("[gateway]\n", "[gateway]\nstate_directory = \"state\"\n");
    write(&hosts[0], &text);
    hosts
}

fn up_with(two: &str) -> [Host; 2] {
    let mut hosts = hosts_with(two);
    for host in &mut hosts {
        host.start();
    }
    wait("an answer", || ping(&hosts));
    hosts
}

fn used(host: &Host) -> u64 {
    let used = &host.status()["caps"]["two"]["used_bytes"];
    used.as_u64().expect("a counter")
}

/// Transfers until the cap of 2 MB is reached: the paths' shares depend on their rates.
fn use_up(hosts: &[Host; 2]) {
    for _ in 0..40 {
        transfer(hosts, || {});
        if used(&hosts[0]) >= 2_000_000 {
            return;
        }
    }
    panic!("path two carried {} octets", used(&hosts[0]));
}

/// Octets of IP packets that an interface carried in both directions.
fn on_the_wire(host: &Host, interface: &str) -> u64 {
    let mut command = host.command("ip");
    command.args(["-s", "-j", "link", "show", interface]);
    let shown = command.output().expect("it runs").stdout;
    let shown: serde_json::Value = serde_json::from_slice(&shown).expect("it is JSON");
    ["rx", "tx"]
        .into_iter()
        .map(|way| {
            let counts = &shown[0]["stats64"][way];
            let count = |name: &str| counts[name].as_u64().expect("a counter");
            count("bytes") - 14 * count("packets")
        })
        .sum()
}

#[test]
fn a_cap_without_a_folder_is_refused_with_its_place() {
    let folder = super::folder();
    let text = format!(
        "{}[path.dsl]\ninterface = \"eth1\"\ncap = \"1 GB/month\"\n",
        super::good()
    );
    fs::write(folder.path().join("gw.toml"), &text).expect("it is written");
    let line = text.lines().position(|line| line.starts_with("cap = "));
    let place = format!(
        "gw.toml:{}:7: path dsl: the count",
        line.expect("a line") + 1
    );
    for (command, status) in [("check", 0), ("up", 2)] {
        let done = super::gateway(folder.path(), &[command, "gw.toml"]);
        let told = super::text(&done.stderr);
        assert_eq!(done.status.code(), Some(status), "{told}");
        assert!(told.contains(&place), "{told}");
    }
}

#[test]
#[ignore = "needs a kernel in virtual time: make kernel test-kernel"]
fn a_count_agrees_with_the_interface_and_outlives_a_crash() {
    let mut hosts = up_with("cap = \"1 GB/month\"");
    // The interface would count the headers of a batch of datagrams once.
    for host in &hosts {
        host.ip(&["link", "set", "w2", "gso_max_segs", "1"]);
    }
    wait("the path", || state(&hosts[0], "two") == "active");
    let (before, wire) = (used(&hosts[0]), on_the_wire(&hosts[0], "w2"));
    for _ in 0..4 {
        transfer(&hosts, || {});
    }
    let (after, wire) = (
        used(&hosts[0]) - before,
        on_the_wire(&hosts[0], "w2") - wire,
    );
    assert!(after > 2_000_000, "{after}");
    // Headers are 2 % of full packets. Beside the tunnel the interface carries neighbour discovery.
    let range = wire - wire / 100..wire + wire / 100;
    assert!(
        range.contains(&after),
        "counted {after}, on the wire {wire}"
    );
    let shown = super::text(&hosts[0].ask(&[]).stdout);
    assert!(
        shown.contains("\ncap two: ") && shown.contains(" of 1 GB since "),
        "{shown}"
    );

    let saved = hosts[0].folder.path().join("state/usage-anabranch0.json");
    // A write follows each megabyte.
    wait("the file", || saved.exists());
    std::thread::sleep(Duration::from_millis(2_500));
    let before = used(&hosts[0]);
    let gateway = hosts[0].gateway.as_mut().expect("it is up");
    gateway.kill().expect("it is ours");
    gateway.wait().expect("it ends");
    let mode = fs::metadata(&saved)
        .expect("it is there")
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o600);
    hosts[0].start();
    let kept = used(&hosts[0]);
    assert!(kept + 1_100_000 >= before, "{kept} of {before}");
    // A regular end loses nothing.
    wait("an answer", || ping(&hosts));
    let before = used(&hosts[0]);
    assert_eq!(hosts[0].stop(), Some(0));
    hosts[0].start();
    assert!(used(&hosts[0]) >= before);
}

#[test]
#[ignore = "needs a kernel in virtual time: make kernel test-kernel"]
fn a_path_at_its_cap_is_metered_at_both_ends() {
    let hosts = up_with("cap = \"2 MB/month\"\nalarms = [50]");
    wait("both paths", || {
        ["one", "two"]
            .iter()
            .all(|path| state(&hosts[0], path) == "active")
    });
    use_up(&hosts);
    wait("the cap", || state(&hosts[0], "two") == "standby");
    let log = hosts[0].log();
    let reached = "path two: the cap of 2 MB a month is reached; until ";
    assert!(log.contains(reached), "{log}");
    let cap = hosts[0].status()["caps"]["two"].clone();
    assert_eq!(cap["level"], 100, "{cap}");
    wait("the other end", || state(&hosts[1], "1") == "standby");
    let before = used(&hosts[0]);
    transfer(&hosts, || {});
    let more = used(&hosts[0]) - before;
    assert!(more < 20_000, "{more}");
    // A greater cap frees the path.
    write(
        &hosts[0],
        &file(&hosts[0]).replace("2 MB/month", "1 GB/month"),
    );
    assert_eq!(reload(&hosts[0]), (Some(0), String::new()));
    wait("the path", || state(&hosts[0], "two") == "active");
    wait("the path", || state(&hosts[1], "1") == "active");
}

#[test]
#[ignore = "needs a kernel in virtual time: make kernel test-kernel"]
fn a_path_that_is_off_at_its_cap_sends_nothing() {
    let mut hosts = up_with("cap = \"2 MB/month\"\nat_cap = \"off\"");
    wait("both paths", || {
        ["one", "two"]
            .iter()
            .all(|path| state(&hosts[0], path) == "active")
    });
    use_up(&hosts);
    wait("the cap", || state(&hosts[0], "two") == "dead");
    let reason = || hosts[0].status()["peers"]["other"]["paths"]["two"]["reason"].clone();
    assert_eq!(reason(), "cap reached");
    let before = on_the_wire(&hosts[0], "w2");
    transfer(&hosts, || {});
    let more = on_the_wire(&hosts[0], "w2") - before;
    // Probes of the other end arrive.
    assert!(more < 20_000, "{more}");
    // Not even if no other path is left.
    hosts[1].ip(&["link", "set", "w1", "down"]);
    wait("the end of the tunnel", || {
        hosts[0].status()["peers"]["other"]["state"] == "down"
    });
    assert!(!ping(&hosts));
    // The cap holds after a restart.
    hosts[1].ip(&["link", "set", "w1", "up"]);
    assert_eq!(hosts[0].stop(), Some(0));
    hosts[0].start();
    assert_eq!(
        hosts[0].status()["peers"]["other"]["paths"]["two"]["reason"],
        "cap reached"
    );
    wait("an answer", || ping(&hosts));
}

/// The other end measures the limited rate.
#[test]
#[ignore = "needs a kernel in virtual time: make kernel test-kernel"]
fn a_limited_path_sends_no_faster() {
    let hosts = up_with("max_rate = \"4 Mbit/s\"");
    wait("both paths", || {
        ["one", "two"]
            .iter()
            .all(|path| state(&hosts[0], path) == "active")
    });
    let rate = || {
        let rate = &hosts[0].status()["peers"]["other"]["paths"]["two"]["rate_mbit_s"];
        rate.as_f64().expect("a rate")
    };
    assert!(rate() <= 4.0, "{}", rate());
    let before = on_the_wire(&hosts[0], "w2");
    let start = std::time::Instant::now();
    transfer(&hosts, || {});
    let most = 2e6 * start.elapsed().as_secs_f64() + 200_000.0;
    let sent = on_the_wire(&hosts[0], "w2") - before;
    assert!((sent as f64) < most, "{sent} of at most {most}");
    assert!(rate() <= 4.0, "{}", rate());
}

#[test]
#[ignore = "needs a kernel in virtual time: make kernel test-kernel"]
fn counts_need_a_folder_and_a_damaged_file_is_kept() {
    let mut hosts = hosts_with("cap = \"2 MB/month\"");
    let whole = file(&hosts[0]);
    let without = whole.replace("state_directory = \"state\"\n", "");
    write(&hosts[0], &without);
    let mut command = hosts[0].command(super::namespaces::GATEWAY);
    let done = command
        .args(["up", "gw.toml"])
        .env_remove("STATE_DIRECTORY");
    let done = done.output().expect("it runs");
    assert_eq!(done.status.code(), Some(2));
    let told = super::text(&done.stderr);
    assert!(
        told.contains("path two: the count of a `cap` needs a folder"),
        "{told}"
    );

    // A cap cannot be added by a reload without a folder.
    write(&hosts[0], &without.replace("cap = \"2 MB/month\"", ""));
    hosts[0].start();
    write(&hosts[0], &without);
    let (status, told) = reload(&hosts[0]);
    assert_eq!(status, Some(1));
    assert!(told.contains("needs a folder"), "{told}");
    assert_eq!(hosts[0].stop(), Some(0));

    write(&hosts[0], &whole);
    let folder = hosts[0].folder.path().join("state");
    fs::create_dir(&folder).expect("it is made");
    let saved = folder.join("usage-anabranch0.json");
    fs::write(&saved, "{\"version\":1").expect("it is written");
    hosts[0].start();
    let log = hosts[0].log();
    assert!(
        log.contains("the counts of data caps begin again at 0"),
        "{log}"
    );
    let kept = folder.join("usage-anabranch0.json.unreadable");
    assert_eq!(fs::read(kept).expect("it is kept"), b"{\"version\":1");
}
