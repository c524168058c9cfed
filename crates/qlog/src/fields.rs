//! Conversion of JSON to events. Numbers may be written as text, as older versions do.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use serde_json::Value;

use crate::event::{Event, Frame, Metrics, Packet, PacketKind, Parameters, Trigger};

/// A number, or text that is one.
pub(crate) fn number(value: &Value) -> Option<f64> {
    match value {
        Value::Number(number) => number.as_f64(),
        Value::String(text) => text.trim().parse().ok(),
        _ => None,
    }
    .filter(|number: &f64| number.is_finite())
}

/// A whole number, or text that is one.
pub(crate) fn whole(value: &Value) -> Option<u64> {
    match value {
        Value::Number(_) => value.as_u64().or_else(|| rounded(value.as_f64()?)),
        Value::String(text) => text.trim().parse().ok(),
        _ => None,
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the range is checked"
)]
fn rounded(number: f64) -> Option<u64> {
    (0.0..9e15).contains(&number).then_some(number as u64)
}

fn at(value: &Value, key: &str) -> Option<u64> {
    whole(value.get(key)?)
}

/// The event of a name, if it is one that this crate delivers. `None` for others, and for one that
/// lacks its fields.
pub(crate) fn event(name: &str, data: &Value) -> Option<Event> {
    match name {
        "packet_sent" => packet(data, true).map(Event::Packet),
        "packet_received" => packet(data, false).map(Event::Packet),
        "packet_lost" => lost(data),
        "metrics_updated" | "recovery_metrics_updated" | "metric_update" => {
            Some(Event::Metrics(metrics(data)))
        }
        "parameters_set" | "parameters_restored" => Some(Event::Parameters(parameters(data))),
        "connection_started" => Some(started(data)),
        _ => None,
    }
}

fn kind(text: &str) -> PacketKind {
    match text.to_ascii_lowercase().as_str() {
        "initial" => PacketKind::Initial,
        "handshake" => PacketKind::Handshake,
        "1rtt" | "0rtt" | "onertt" | "zerortt" => PacketKind::Application,
        "retry" => PacketKind::Retry,
        "version_negotiation" | "versionnegotiation" => PacketKind::VersionNegotiation,
        _ => PacketKind::Other,
    }
}

fn kind_of(data: &Value, header: Option<&Value>) -> PacketKind {
    let named = header.and_then(|header| header.get("packet_type"));
    let named = named.or_else(|| data.get("packet_type"));
    named
        .and_then(Value::as_str)
        .map_or(PacketKind::Other, kind)
}

fn packet(data: &Value, is_sent: bool) -> Option<Packet> {
    data.as_object()?;
    let header = data.get("header");
    let raw = data.get("raw");
    let length = raw.and_then(|raw| at(raw, "length"));
    // Drafts before 02 have the size in the header.
    let length = length.or_else(|| header.and_then(|header| at(header, "packet_size")));
    let frames = data.get("frames").and_then(Value::as_array);
    let trigger = data.get("trigger").and_then(Value::as_str);
    let version = header.and_then(|header| header.get("version"));
    Some(Packet {
        is_sent,
        kind: kind_of(data, header),
        number: header.and_then(|header| at(header, "packet_number")),
        length,
        version: version.and_then(text),
        frames: frames.map(|frames| frames.iter().map(frame).collect()),
        is_probe: matches!(trigger, Some("pto_probe" | "retransmit_timeout")),
    })
}

fn text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.chars().take(32).collect()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

fn frame(value: &Value) -> Frame {
    known_frame(value).unwrap_or(Frame::Other)
}

fn known_frame(value: &Value) -> Option<Frame> {
    let named = value.get("frame_type")?.as_str()?.to_ascii_lowercase();
    let frame = match named.as_str() {
        "stream" => Frame::Stream {
            id: at(value, "stream_id").or_else(|| at(value, "id"))?,
            offset: at(value, "offset").unwrap_or(0),
            length: length(value)?,
            fin: value.get("fin").is_some_and(is_true),
        },
        "ack" => Frame::Ack(ranges(value.get("acked_ranges")?)?),
        "crypto" => Frame::Crypto {
            offset: at(value, "offset").unwrap_or(0),
        },
        "max_data" => Frame::MaxData(at(value, "maximum")?),
        "max_stream_data" => Frame::MaxStreamData {
            id: at(value, "stream_id")?,
            maximum: at(value, "maximum")?,
        },
        "reset_stream" => Frame::ResetStream {
            id: at(value, "stream_id")?,
        },
        "connection_close" => Frame::Close,
        _ => return None,
    };
    Some(frame)
}

fn is_true(value: &Value) -> bool {
    value.as_bool().unwrap_or(value == "true")
}

/// Octets of data: a field of the frame, or of its raw information.
fn length(value: &Value) -> Option<u64> {
    let raw = value.get("raw");
    at(value, "length")
        .or_else(|| at(raw?, "payload_length"))
        .or_else(|| at(raw?, "length"))
}

/// Ranges of packet numbers: pairs, or single numbers in a list.
fn ranges(value: &Value) -> Option<Vec<(u64, u64)>> {
    let all = value.as_array()?.iter().filter_map(|range| {
        let ends = range.as_array()?;
        let first = whole(ends.first()?)?;
        let last = ends.get(1).map_or(Some(first), whole)?;
        Some((first.min(last), first.max(last)))
    });
    let mut all: Vec<_> = all.collect();
    all.sort_unstable();
    Some(all)
}

fn lost(data: &Value) -> Option<Event> {
    let header = data.get("header");
    let number = header.and_then(|header| at(header, "packet_number"));
    let trigger = match data.get("trigger").and_then(Value::as_str) {
        Some("reordering_threshold") => Trigger::Reordering,
        Some("time_threshold") => Trigger::Time,
        Some("pto_expired") => Trigger::Probe,
        _ => Trigger::Other,
    };
    Some(Event::Lost {
        kind: kind_of(data, header),
        number: number.or_else(|| at(data, "packet_number"))?,
        trigger,
    })
}

fn metrics(data: &Value) -> Metrics {
    let cwnd = at(data, "congestion_window").or_else(|| at(data, "cwnd"));
    Metrics {
        congestion_window: cwnd,
        bytes_in_flight: at(data, "bytes_in_flight"),
        latest_rtt_ms: data.get("latest_rtt").and_then(number),
        pacing_rate: data.get("pacing_rate").and_then(number),
    }
}

fn parameters(data: &Value) -> Parameters {
    let owner = data.get("initiator").or_else(|| data.get("owner"));
    Parameters {
        is_local: owner.and_then(Value::as_str) == Some("local"),
        max_data: at(data, "initial_max_data"),
        bidi_local: at(data, "initial_max_stream_data_bidi_local"),
        bidi_remote: at(data, "initial_max_stream_data_bidi_remote"),
        uni: at(data, "initial_max_stream_data_uni"),
    }
}

fn started(data: &Value) -> Event {
    let flat = |name: &str| {
        let address = data.get(format!("{name}_ip"))?.as_str()?.parse().ok()?;
        let port = at(data, &format!("{name}_port"))?;
        Some((address, u16::try_from(port).ok()?))
    };
    Event::Started {
        local: data.get("local").and_then(end).or_else(|| flat("src")),
        remote: data.get("remote").and_then(end).or_else(|| flat("dst")),
    }
}

fn end(value: &Value) -> Option<(IpAddr, u16)> {
    let text = |key: &str| value.get(key).and_then(Value::as_str);
    let port = |key: &str| at(value, key).and_then(|port| u16::try_from(port).ok());
    let v4 = text("ip_v4").and_then(|text| text.parse::<Ipv4Addr>().ok());
    let v6 = text("ip_v6").and_then(|text| text.parse::<Ipv6Addr>().ok());
    match (v4, v6) {
        (Some(v4), _) => Some((v4.into(), port("port_v4").unwrap_or(0))),
        (None, Some(v6)) => Some((v6.into(), port("port_v6").unwrap_or(0))),
        (None, None) => None,
    }
}
