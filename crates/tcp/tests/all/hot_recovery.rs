//! The hot path during the repair of losses.

use crate::support;

use anabranch_core::{
    body::Octets,
    packet::Ecn,
    units::{Bytes, Duration, text::Limit},
};
use anabranch_tcp::{Profile, Settings};
use anabranch_wire::{Flags, Options, Segment, segment::SackBlock};
use support::{Link, Net, octets};

/// A transfer that has written its data, over a link that loses every third of some segments.
fn net(settings: &Settings, lose: std::ops::Range<u32>, hot: bool) -> Net<Octets> {
    let link = Link {
        gap: Duration::from_micros(100),
        lose: lose.step_by(3).collect(),
        ..Link::default()
    };
    let mut net = Net::new(settings, settings, link, [1, u32::MAX - 9]);
    net.hot = hot;
    net.open();
    net.ends[0].write_repeating(octets(1, 251));
    net
}

fn settings(stack: &str) -> Settings {
    Profile::named(stack).expect("it exists").settings
}

/// Segments that repair losses are hot, and those around them.
#[test]
fn most_segments_of_a_recovery_are_hot() {
    for stack in ["rfc", "linux"] {
        let mut net = net(&settings(stack), 200..400, true);
        while net.events < 2_000 {
            net.step();
        }
        let stats = net.ends[0].stats();
        assert!(
            stats.retransmitted_packets >= 50 && stats.timeouts == 0,
            "{stack}"
        );
        assert!(net.taken_hot > 1_600, "{stack}: {}", net.taken_hot);
    }
}

/// A change of a segment that arrives.
type Change = fn(&mut Segment<Octets>, &Net<Octets>);

/// Segments that an end in a recovery may receive, by the last one that it received.
const CHANGES: [Change; 20] = [
    |_, _| {},
    |segment, net| segment.seq = net.ends[1].rcv_nxt().wire(),
    |segment, _| segment.seq = segment.seq.wrapping_add(1),
    |segment, net| segment.seq = net.ends[1].window_end().wire().wrapping_sub(1),
    |segment, net| segment.seq = net.ends[1].window_end().wire(),
    |segment, _| segment.seq = segment.seq.wrapping_add(9_000),
    |segment, _| segment.ack = segment.ack.wrapping_add(1),
    |segment, _| segment.ack = segment.ack.wrapping_add(1 << 20),
    |segment, _| segment.ack = segment.ack.wrapping_sub(1),
    |segment, _| segment.window = segment.window.wrapping_sub(1),
    |segment, _| segment.flags |= Flags::PSH,
    |segment, _| segment.flags |= Flags::FIN,
    |segment, _| segment.flags |= Flags::URG,
    |segment, _| segment.flags |= Flags::SYN,
    |segment, _| segment.flags |= Flags::ECE,
    |segment, _| segment.timestamps = None,
    |segment, _| {
        if let Some(timestamps) = &mut segment.timestamps {
            timestamps.value = timestamps.value.wrapping_sub(1_000_000);
        }
    },
    |segment, _| segment.body = octets(3, 40),
    |segment, _| segment.body = Octets::default(),
    |segment, net| {
        let left = net.ends[0].snd_una().wire().wrapping_add(100);
        let right = left.wrapping_add(100);
        segment.options = Options::Sack(1, [SackBlock { left, right }; 4]);
    },
];

/// Detects a hot function that leaves out a step of the general path, or takes a segment that it
/// must not take.
#[test]
fn any_segment_in_a_recovery_leaves_the_state_of_the_general_path() {
    for stack in ["rfc", "linux"] {
        let settings = Settings {
            receive_window: Limit::Bytes(Bytes::new(100_000)),
            ..settings(stack)
        };
        let changes = CHANGES.iter().map(|change| (change, Ecn::NotEct));
        let marked = [(&CHANGES[0], Ecn::Ce)];
        for (number, (change, ecn)) in changes.chain(marked).enumerate() {
            for to in [0, 1] {
                let mut nets = [false, true].map(|hot| net(&settings, 20..60, hot));
                for events in 0..180 {
                    for net in &mut nets {
                        if [60, 75, 100, 130].contains(&events)
                            && let Some(mut segment) = net.last_delivered(to)
                        {
                            change(&mut segment, net);
                            net.inject_marked(to, &segment, ecn);
                        }
                        net.step();
                    }
                    if [62, 77, 102, 132, 179].contains(&events) {
                        let [general, hot] = nets.each_ref().map(|net| format!("{:?}", net.ends));
                        assert!(general == hot, "{stack}, {number} to {to}: {events}");
                    }
                }
            }
        }
    }
}
