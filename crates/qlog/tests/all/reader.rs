//! Formats, versions and bad input.

use anabranch_qlog::{Account, Error, Event, Frame, PacketKind, Record, is_qlog, read};

/// An event as read: its number, time in nanoseconds, and content.
type Read = (u64, i64, Event);

fn events(text: &str) -> Result<(Account, Vec<Read>), Error> {
    let mut found = Vec::new();
    let take = |record: Record<'_>| found.push((record.number, record.time, record.event));
    let account = read(|| Ok(text.as_bytes()), || false, take)?;
    Ok((account, found))
}

const SENT: &str = r#"{"header":{"packet_type":"1RTT","packet_number":7},"raw":{"length":120},"frames":[{"frame_type":"stream","stream_id":0,"offset":5,"length":100,"fin":true}]}"#;
const ACKED: &str = r#"{"header":{"packet_type":"1RTT","packet_number":"3"},"frames":[{"frame_type":"ack","acked_ranges":[["6","7"],[2]]}]}"#;

fn sequence(header: &str, lines: &[(f64, &str, &str)]) -> String {
    let lines = lines.iter().map(|(time, name, data)| {
        format!("\u{1e}{{\"time\":{time},\"name\":\"{name}\",\"data\":{data}}}\n")
    });
    format!("\u{1e}{header}\n{}", lines.collect::<String>())
}

const V03: &str = r#"{"qlog_version":"0.3","qlog_format":"JSON-SEQ","trace":{"vantage_point":{"type":"client"}}}"#;

fn both(space: &str) -> [(f64, String, &'static str); 2] {
    [
        (1.5, format!("{space}:packet_sent"), SENT),
        (20.25, format!("{space}:packet_received"), ACKED),
    ]
}

fn check(found: &[Read]) {
    let [
        (_, first, Event::Packet(sent)),
        (_, second, Event::Packet(received)),
    ] = found
    else {
        panic!("{found:?}");
    };
    assert_eq!((*first, *second), (1_500_000, 20_250_000));
    assert!(sent.is_sent && !received.is_sent);
    assert_eq!((sent.kind, sent.number), (PacketKind::Application, Some(7)));
    let stream = Frame::Stream {
        id: 0,
        offset: 5,
        length: 100,
        fin: true,
    };
    assert_eq!(sent.frames, Some(vec![stream]));
    assert_eq!(received.number, Some(3));
    assert_eq!(
        received.frames,
        Some(vec![Frame::Ack(vec![(2, 2), (6, 7)])])
    );
}

#[test]
fn all_formats_give_the_same_events() {
    let urn = r#"{"file_schema":"urn:ietf:params:qlog:file:sequential","serialization_format":"application/qlog+json-seq","trace":{"vantage_point":{"type":"server"},"event_schemas":["urn:ietf:params:qlog:events:quic"]}}"#;
    for (header, space) in [(V03, "transport"), (urn, "quic")] {
        let lines = both(space);
        let lines: Vec<_> = lines
            .iter()
            .map(|(at, name, data)| (*at, name.as_str(), *data))
            .collect();
        let (account, found) = events(&sequence(header, &lines)).expect("a qlog");
        check(&found);
        assert_eq!((account.events, account.packets), (2, 2));
        // Without separators: lines of JSON.
        let (_, found) = events(&sequence(header, &lines).replace('\u{1e}', "")).expect("a qlog");
        check(&found);
    }
    let objects = format!(
        r#"{{"time":1.5,"name":"transport:packet_sent","data":{SENT}}},{{"time":"20.25","name":"transport:packet_received","data":{ACKED}}}"#
    );
    // The fields of the trace may follow its events.
    for trace in [
        format!(r#""vantage_point":{{"type":"client"}},"events":[{objects}]"#),
        format!(r#""events":[{objects}],"vantage_point":{{"type":"client"}}"#),
    ] {
        let text = format!(r#"{{"qlog_version":"0.4","traces":[{{{trace}}}]}}"#);
        check(&events(&text).expect("a qlog").1);
    }
    let rows = format!(
        r#"["1500","transport","packet_sent",{SENT}],["20250","transport","packet_received",{ACKED}]"#
    );
    let text = format!(
        r#"{{"traces":[{{"events":[{rows}],"configuration":{{"time_units":"us"}},"event_fields":["relative_time","category","event","data"]}}],"qlog_version":"draft-01"}}"#
    );
    check(&events(&text).expect("a qlog").1);
    // A column without a name keeps its place.
    let odd = text
        .replace(r#""category","#, r#"null,"category","#)
        .replace(r#","transport""#, r#",0,"transport""#);
    assert_ne!(odd, text);
    check(&events(&odd).expect("a qlog").1);
}

#[test]
fn times_may_be_differences_or_of_the_clock() {
    let header = |format: &str| {
        format!(
            r#"{{"qlog_version":"0.3","qlog_format":"JSON-SEQ","trace":{{"common_fields":{{"time_format":"{format}","reference_time":1000000000000}}}}}}"#
        )
    };
    let times = |format: &str, lines: [f64; 2]| {
        let lines = lines.map(|at| (at, "transport:packet_sent", SENT));
        let (_, found) = events(&sequence(&header(format), &lines)).expect("a qlog");
        found
            .iter()
            .map(|one| one.1 - 1_000_000_000_000_000_000)
            .collect::<Vec<_>>()
    };
    assert_eq!(times("delta", [1.0, 2.0]), [1_000_000, 3_000_000]);
    assert_eq!(times("relative", [1.0, 2.0]), [1_000_000, 2_000_000]);
    // Such a number has a resolution of 128 ns.
    let absolute = times("absolute", [1e12 + 1.0, 1e12 + 2.0]);
    assert!(absolute[0].abs_diff(1_000_000) < 200 && absolute[1].abs_diff(2_000_000) < 200);
}

#[test]
fn a_file_that_is_cut_off_is_read_up_to_there() {
    let lines: Vec<_> = (0..3)
        .map(|k| (f64::from(k), "transport:packet_sent", SENT))
        .collect();
    let whole = sequence(V03, &lines);
    let (account, found) = events(&whole[..whole.len() - 20]).expect("a part of a qlog");
    assert!(account.is_cut_off);
    assert_eq!(found.len(), 2);
    let objects =
        vec![format!(r#"{{"time":1,"name":"transport:packet_sent","data":{SENT}}}"#); 3].join(",");
    let whole = format!(
        r#"{{"qlog_version":"0.3","traces":[{{"vantage_point":{{"type":"client"}},"events":[{objects}"#
    );
    let (account, found) = events(&whole[..whole.len() - 20]).expect("a part of a qlog");
    assert!(account.is_cut_off);
    assert_eq!(found.len(), 2);
}

#[test]
fn damage_is_named_by_event_and_line() {
    let whole = sequence(
        V03,
        &[(1.0, "transport:packet_sent", SENT), (2.0, "x", "}")],
    );
    let (account, found) = events(&whole).expect("a part of a qlog");
    assert_eq!(found.len(), 1);
    let damage = account.damaged.expect("it is damaged");
    assert!(
        damage.starts_with("the data after event 1 is damaged (line 3, column"),
        "{damage}"
    );
}

#[test]
fn bad_input_has_a_message_each() {
    let trace = |vantage: &str| {
        format!(
            r#"{{"vantage_point":{{"type":"{vantage}"}},"events":[{{"time":1,"name":"transport:packet_sent","data":{SENT}}}]}}"#
        )
    };
    let file = |traces: &[String]| {
        format!(
            r#"{{"qlog_version":"0.3","traces":[{}]}}"#,
            traces.join(",")
        )
    };
    let cases = [
        (
            r#"{"a": 1}"#.to_owned(),
            "it is JSON without a trace of qlog",
        ),
        (
            r#"{"qlog_version":"9.9","traces":[]}"#.to_owned(),
            "its qlog version is \"9.9\"; expected one of draft-00",
        ),
        (
            r#"{"qlog_version":"0.3","tra"#.to_owned(),
            "the header of the qlog cannot be read (line 1, column 26: it is cut off)",
        ),
        (
            r#"{"qlog_version":]"#.to_owned(),
            "the header of the qlog cannot be read (line 1, column 17: it is not JSON)",
        ),
        (
            file(&[trace("client"), trace("server")]),
            "its traces were recorded at different points (client and server)",
        ),
        (
            file(&[trace("network")]),
            "its vantage point is the network",
        ),
        (
            sequence(V03, &[]),
            "its qlog has no packets of QUIC; expected",
        ),
        (
            sequence(
                r#"{"file_schema":"urn:ietf:params:qlog:file:sequential","trace":{"event_schemas":["urn:x:tcp"]}}"#,
                &[(1.0, "tcp:packet_sent", SENT)],
            ),
            "its qlog has no packets of QUIC (its events are of urn:x:tcp)",
        ),
    ];
    for (text, message) in cases {
        let error = events(&text).expect_err(&text).to_string();
        assert!(error.starts_with(message), "{error}");
        assert!(error.contains("expected"), "{error}");
    }
}

#[test]
fn reading_ends_when_it_is_interrupted() {
    let text = sequence(V03, &[(1.0, "transport:packet_sent", SENT)]);
    let found = read(|| Ok(text.as_bytes()), || true, |_| {});
    assert_eq!(found, Err(Error::Interrupted));
}

#[test]
fn a_qlog_is_recognised_by_its_first_octets() {
    assert!(is_qlog(b" {\"qlog_version\""));
    assert!(is_qlog(b"\x1e{"));
    assert!(is_qlog(b"\xef\xbb\xbf{"));
    assert!(!is_qlog(b"\xd4\xc3\xb2\xa1"));
    assert!(!is_qlog(b""));
}

#[test]
fn frames_of_later_drafts_have_their_length_in_raw() {
    let data = r#"{"header":{"packet_type":"1RTT","packet_number":1},"frames":[{"frame_type":"stream","stream_id":4,"raw":{"length":110,"payload_length":100}},{"frame_type":"ping"}]}"#;
    let (_, found) = events(&sequence(V03, &[(1.0, "quic:packet_sent", data)])).expect("a qlog");
    let Event::Packet(packet) = &found[0].2 else {
        panic!("{found:?}");
    };
    let stream = Frame::Stream {
        id: 4,
        offset: 0,
        length: 100,
        fin: false,
    };
    assert_eq!(packet.frames, Some(vec![stream, Frame::Other]));
}
