//! The next step for a connection.

use anabranch_diagnose::{
    finding::{Cause, Kind},
    limit::Limit,
    next,
    report::{Connection, DirectionName, Finding},
};

use crate::make::{MSS, Script};

/// A connection with data from A, and the given findings.
fn with(findings: &[(Cause, DirectionName, f64)]) -> Connection {
    let mut script = Script::opened();
    script.data(30, 0, MSS).ack(40, MSS, &[]);
    let mut connection = script.connection();
    connection.findings = findings
        .iter()
        .map(|&(cause, direction, share)| Finding {
            cause,
            direction,
            share,
            text: String::new(),
            packets: Vec::new(),
        })
        .collect();
    connection
}

#[test]
fn every_limit_has_a_step_and_no_two_findings_share_a_rank() {
    for limit in Limit::ALL {
        assert!(!limit.meta().next.is_empty(), "{limit:?}");
    }
    let mut ranks: Vec<_> = Kind::ALL
        .iter()
        .filter_map(|kind| kind.meta().rank)
        .collect();
    let count = ranks.len();
    ranks.sort_unstable();
    ranks.dedup();
    assert_eq!(ranks.len(), count);
}

#[test]
fn a_step_has_no_placeholder_and_no_mark_of_a_command() {
    let limits = Limit::ALL.into_iter().map(Cause::from);
    for cause in limits.chain(Kind::ALL.into_iter().map(Cause::from)) {
        let step = next::step(&with(&[(cause, DirectionName::BToA, 0.5)])).expect("a step");
        assert!(!step.contains(['{', '}', '`']), "{cause:?}: {step}");
    }
}

#[test]
fn a_ranked_finding_precedes_larger_shares_of_time() {
    let bottleneck = (Limit::Bottleneck.into(), DirectionName::AToB, 0.9);
    for (share, is_first) in [(0.04, false), (0.06, true)] {
        let connection = with(&[
            bottleneck,
            (Kind::SynLoss.into(), DirectionName::BToA, share),
        ]);
        let step = next::step(&connection).expect("a step");
        // The step names the end that was called, whatever the direction of the finding.
        let expected = format!("find out whether {} accepts fast enough", connection.b);
        assert_eq!(step.starts_with(&expected), is_first, "{step}");
    }
}

#[test]
fn nagle_in_the_other_direction_explains_a_slow_client() {
    let slow = (Kind::SlowClient.into(), DirectionName::BToA, 0.8);
    for (share, is_nagle) in [(0.3, false), (0.6, true)] {
        let nagle = (Limit::DelayedAckNagle.into(), DirectionName::AToB, share);
        let connection = with(&[slow, nagle]);
        let step = next::step(&connection).expect("a step");
        let expected = format!("set TCP_NODELAY at {}", connection.a);
        assert_eq!(step.starts_with(&expected), is_nagle, "{step}");
    }
}

#[test]
fn shares_of_segments_and_octets_are_not_shares_of_the_time() {
    let bottleneck = (Limit::Bottleneck.into(), DirectionName::AToB, 0.2);
    for (kind, share, expected) in [
        (Kind::Reordering, 0.3, "the path is full"),
        (Kind::Reordering, 0.6, "the path is full"),
        (Kind::CaptureGap, 0.3, "the path is full"),
        (Kind::CaptureGap, 0.6, "capture again"),
    ] {
        let connection = with(&[bottleneck, (kind.into(), DirectionName::AToB, share)]);
        let step = next::step(&connection).expect("a step");
        assert!(step.starts_with(expected), "{kind:?}: {step}");
    }
}

#[test]
fn the_place_of_the_loss_precedes_its_kind_and_reordering() {
    let window = Limit::CongestionWindow.into();
    let mut findings = vec![(window, DirectionName::AToB, 0.9)];
    for (kind, expected) in [
        (None, "let --advise try"),
        (Some(Kind::Reordering), "look for links"),
        (
            Some(Kind::RandomLoss),
            "find where the segments are lost: capture at",
        ),
        (
            Some(Kind::LossBeforeCapture),
            "find where the segments are lost: between",
        ),
    ] {
        findings.extend(kind.map(|kind| (kind.into(), DirectionName::AToB, 0.01)));
        let step = next::step(&with(&findings)).expect("a step");
        assert!(step.starts_with(expected), "{step}");
    }
}

#[test]
fn a_connection_without_time_has_no_step() {
    let mut connection = with(&[]);
    assert!(next::step(&connection).is_some());
    for time in connection.directions.a_to_b.limits_s.values_mut() {
        *time = 0.0;
    }
    connection.directions.a_to_b.closing_s = 0.0;
    assert_eq!(next::step(&connection), None);
}

#[test]
fn only_connections_that_failed_or_began_late_have_a_failure() {
    let mut script = Script::opened();
    script.data(30, 0, MSS).ack(40, MSS, &[]);
    assert_eq!(script.connection().failure, None);
    let mut again = script.packets[0].clone();
    for packet in &mut script.packets {
        packet.micros += 1_000_000;
    }
    again.id -= 1;
    script.packets.insert(0, again);
    let connection = script.connection();
    assert_eq!(connection.failure, Some(Kind::SynLoss.into()));
    // The second that passed before the second SYN.
    assert!(
        (connection.lost_s - 1.0).abs() < 0.1,
        "{}",
        connection.lost_s
    );
}

#[test]
fn the_end_that_opened_the_connection_asks_and_the_other_answers() {
    for (direction, asks) in [(DirectionName::AToB, true), (DirectionName::BToA, false)] {
        let mut connection = with(&[(Limit::Application.into(), direction, 0.9)]);
        let ways = &mut connection.directions;
        for way in [&mut ways.a_to_b, &mut ways.b_to_a] {
            way.limits_s.insert(Limit::Application, 10.0);
            way.answering_s = 9.0;
            (way.closing_s, way.receiver_application_s) = (0.0, 0.0);
        }
        let step = next::step(&connection).expect("a step");
        assert_eq!(step.contains("sends its requests late"), asks, "{step}");
        assert_eq!(step.contains("takes so long to answer"), !asks, "{step}");
    }
}

/// Sets the share of the path's rate that the data of A uses.
fn fill(connection: &mut Connection, used: f64) {
    let mut script = Script::opened();
    for k in 0..40 {
        let (ms, seq) = (30 + u64::from(k) * 20, k * MSS);
        script.data(ms, seq, MSS).ack(ms + 10, seq + MSS, &[]);
    }
    connection.path = script.connection().path;
    assert!(connection.path.model.is_some());
    connection.rate_used = Some(used);
}

#[test]
fn data_that_uses_the_paths_rate_fills_the_path_whatever_it_waits_for() {
    for limit in [
        Limit::CongestionWindow,
        Limit::FastRecovery,
        Limit::Pacing,
        Limit::Undecidable,
    ] {
        let losses = (Kind::RandomLoss.into(), DirectionName::AToB, 0.01);
        let mut connection = with(&[(limit.into(), DirectionName::AToB, 0.9), losses]);
        fill(&mut connection, 0.95);
        let step = next::step(&connection).expect("a step");
        assert!(step.starts_with("the path is full"), "{limit:?}: {step}");
        fill(&mut connection, 0.8);
        let step = next::step(&connection).expect("a step");
        assert!(!step.starts_with("the path is full"), "{limit:?}: {step}");
    }
}

#[test]
fn acknowledgments_that_do_not_reach_the_sender_are_looked_for() {
    let mut script = Script::opened();
    script.data(30, 0, MSS).ack(40, MSS, &[]);
    for k in 1..8 {
        script.data(40 + 10 * k, u32::try_from(k).expect("few") * MSS, MSS);
    }
    // They pass the capture point.
    script.ack(150, 8 * MSS, &[]);
    for ms in [400, 900, 1900, 3900] {
        script.data(ms, MSS, MSS).ack(ms + 10, 8 * MSS, &[]);
    }
    let connection = script.connection();
    let step = connection.next.unwrap_or_default();
    let expected = format!(
        "find where the acknowledgments of {} are lost or delayed: between the capture point and {}",
        connection.b, connection.a
    );
    assert_eq!(step, expected);
}

#[test]
fn a_syn_that_was_answered_leads_to_the_lost_answer() {
    for (is_answered, expected) in [
        (true, "find where the SYN-ACKs"),
        (false, "find out whether"),
    ] {
        let mut script = Script::opened();
        script.data(30, 0, MSS).ack(40, MSS, &[]);
        let (mut syn, mut answer) = (script.packets[0].clone(), script.packets[1].clone());
        for packet in &mut script.packets {
            packet.micros += 1_000_000;
        }
        (syn.id, answer.id) = (syn.id.wrapping_sub(1), answer.id.wrapping_sub(1));
        if is_answered {
            script.packets.insert(0, answer);
        }
        script.packets.insert(0, syn);
        let step = script.connection().next.unwrap_or_default();
        assert!(step.starts_with(expected), "{is_answered}: {step}");
    }
}
