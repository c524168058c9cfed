//! The origin of a RST: two independent signs indicate a device on the path.

use anabranch_diagnose::report::{Origin, Reset, Sign};

use crate::make::{ACK, MSS, Made, RST, Script};

type Edit = fn(&mut Made);

/// A transfer with timestamps that B ends with a RST, modified by `edit`.
fn reset(edit: impl Fn(&mut Made)) -> (Reset, Vec<&'static str>) {
    let mut script = Script::with_stamps();
    for k in 0..8 {
        let ms = 30 + 40 * u64::from(k);
        script.data(ms, k * MSS, MSS);
        script.echo(ms + 20, (k + 1) * MSS, ms);
    }
    script.data(400, 8 * MSS, MSS).echo(420, 9 * MSS, 400);
    let last = script.last();
    last.flags = RST | ACK;
    edit(last);
    let connection = script.connection();
    let causes = connection
        .findings
        .iter()
        .map(|one| one.cause.meta().name)
        .collect();
    (connection.reset.expect("a RST"), causes)
}

#[test]
fn a_reset_without_a_sign_is_the_hosts() {
    let (reset, causes) = reset(|_| ());
    assert_eq!(
        (reset.origin, reset.signs.as_slice()),
        (Origin::Host, &[][..])
    );
    assert!(causes.contains(&"reset"));
}

#[test]
fn one_sign_indicates_no_device() {
    let edits: [(Edit, Sign); 5] = [
        (|rst| rst.hops = 50, Sign::Hops),
        (|rst| rst.id = 50_000, Sign::IpIdentification),
        (|rst| rst.options.clear(), Sign::NoTimestamps),
        (|rst| rst.seq = rst.seq.wrapping_add(20_000), Sign::Sequence),
        (|rst| rst.micros = 1_000_000_000 + 402_000, Sign::TooSoon),
    ];
    for (edit, sign) in edits {
        let (reset, causes) = reset(edit);
        assert_eq!(
            (reset.origin, reset.signs.as_slice()),
            (Origin::Unknown, &[sign][..])
        );
        assert!(causes.contains(&"reset"), "{sign:?}");
        assert!(!causes.contains(&"reset-by-middlebox"), "{sign:?}");
    }
}

#[test]
fn two_independent_signs_indicate_a_device() {
    let (reset, causes) = reset(|rst| {
        rst.hops = 50;
        rst.id = 50_000;
    });
    assert_eq!(
        (reset.origin, reset.signs),
        (Origin::Middlebox, vec![Sign::Hops, Sign::IpIdentification])
    );
    assert!(causes.contains(&"reset-by-middlebox"));
    assert!(!causes.contains(&"reset"));
}

#[test]
fn a_stack_answering_for_a_closed_socket_is_the_hosts() {
    // The stack numbers packets differently and sends no options, for one reason.
    let (one, _) = reset(|rst| {
        rst.id = 50_000;
        rst.options.clear();
    });
    assert_eq!(one.origin, Origin::Unknown);
    let (linux, _) = reset(|rst| rst.id = 0);
    assert_eq!((linux.origin, linux.signs.len()), (Origin::Host, 0));
}

#[test]
fn another_initial_hop_limit_is_no_sign() {
    for hops in [32, 128, 255] {
        let (reset, _) = reset(|rst| rst.hops = hops);
        assert_eq!(
            (reset.origin, reset.signs.len()),
            (Origin::Host, 0),
            "{hops}"
        );
    }
}

#[test]
fn a_host_that_continues_did_not_send_the_reset() {
    let mut script = Script::opened();
    script
        .data(30, 0, MSS)
        .ack(40, MSS, &[])
        .data(50, MSS, MSS)
        .ack(60, 2 * MSS, &[]);
    let last = script.last();
    last.flags = RST | ACK;
    last.hops = 50;
    script.data(70, 2 * MSS, MSS).ack(80, 3 * MSS, &[]);
    let reset = script.connection().reset.expect("a RST");
    assert_eq!(
        (reset.origin, reset.signs),
        (Origin::Middlebox, vec![Sign::Hops, Sign::GoesOn])
    );
}
