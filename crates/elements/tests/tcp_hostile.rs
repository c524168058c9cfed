//! Segments that nobody should send.

mod tcp_support;

use anabranch_core::{
    packet::Ecn,
    units::{Duration, Instant},
};
use anabranch_elements::{
    body::Length,
    tcp::{EcnMode, Flags, Options, Recovery, Role, SackBlock, Segment},
};
use proptest::prelude::*;
use tcp_support::{
    Link, Net, endpoint, octets,
    plain::{RULE, drain, established, link, ms, settings, without_sack},
};

/// A segment of any kind, near what the endpoint expects or far from it.
fn hostile() -> impl Strategy<Value = Segment<Length>> {
    let number = || prop_oneof![-5_000_i32..70_000, any::<i32>()];
    (
        (number(), number()),
        any::<u16>(),
        prop_oneof![Just(Flags::ACK.0), 0_u16..512],
        prop_oneof![Just(None), (any::<u32>(), any::<u32>()).prop_map(Some)],
        prop_oneof![
            Just(Options::None),
            (
                any::<u16>(),
                proptest::option::of(any::<u8>()),
                any::<bool>()
            )
                .prop_map(|(mss, window_scale, sack_permitted)| {
                    Options::Syn {
                        mss,
                        window_scale,
                        sack_permitted,
                    }
                }),
            (any::<u8>(), proptest::array::uniform4((number(), number()))).prop_map(
                |(n, blocks)| {
                    Options::Sack(
                        n,
                        blocks.map(|(left, right)| SackBlock {
                            left: 101_u32.wrapping_add_signed(left),
                            right: 101_u32.wrapping_add_signed(right),
                        }),
                    )
                }
            ),
        ],
        prop_oneof![Just(0_u32), 0_u32..3000],
    )
        .prop_map(
            |((seq, ack), window, flags, timestamps, options, len)| Segment {
                seq: 1_u32.wrapping_add_signed(seq),
                ack: 101_u32.wrapping_add_signed(ack),
                window,
                flags: Flags(flags),
                timestamps: timestamps
                    .map(|(value, echo)| anabranch_elements::tcp::Timestamps { value, echo }),
                options,
                body: Length(len),
            },
        )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 5000, ..ProptestConfig::default() })]
    #[test]
    fn no_segment_makes_an_endpoint_panic(
        segments in proptest::collection::vec((hostile(), 0_u64..300, any::<u8>()), 1..40),
        opened: bool, sack: bool, timed: bool, ecn: bool,
    ) {
        let mut s = if sack { settings() } else { without_sack(Recovery::NewReno) };
        s.ecn = if ecn { EcnMode::Rfc3168 } else { EcnMode::Off };
        let mut end = if opened { established(&s) } else { endpoint(&s, Role::Passive, 100) };
        if timed {
            end = end.with_timer_rule(Some(RULE));
        }
        end.write_all(Length(30_000));
        let mut now = ms(100);
        for (n, (segment, wait, codepoint)) in segments.into_iter().enumerate() {
            now = now.saturating_add(Duration::from_millis(wait));
            if end.deadline() <= now {
                end.on_deadline(now);
            }
            let before = *end.stats();
            end.on_segment(now, &segment, Ecn::from_bits(codepoint));
            prop_assert!(drain(&mut end, now).len() < 200);
            // No more is delivered than came.
            prop_assert!(end.stats().delivered_bytes <= before.delivered_bytes + 120_000);
            if n == 20 {
                end.close();
            }
        }
        // It still comes to an end.
        let mut steps = 0;
        while end.deadline() != Instant::NEVER && steps < 100 {
            now = end.deadline();
            end.on_deadline(now);
            drain(&mut end, now);
            steps += 1;
        }
    }

    #[test]
    fn strangers_do_not_disturb_a_transfer(
        segments in proptest::collection::vec((hostile(), 0_usize..2), 1..30), sack: bool,
    ) {
        // Whoever does not know the numbers (all but one in 2^16 of them) changes nothing.
        let s = if sack { settings() } else { without_sack(Recovery::NewReno) };
        let link = Link { loss: 0.05, ..link(&[]) };
        let mut net: Net<anabranch_elements::body::Octets> = Net::new(&s, &s, link, [1 << 30, 1 << 31]);
        net.ends[1].set_auto_read(false);
        net.open();
        net.run_until(ms(4000));
        let stream = octets(5, 100_000);
        net.ends[0].write_all(stream.clone());
        net.flush();
        let mut got = Vec::new();
        for (segment, to) in segments {
            for _ in 0..20 {
                net.step();
            }
            let injected = Segment {
                seq: segment.seq,
                ack: segment.ack,
                window: segment.window,
                flags: segment.flags,
                timestamps: segment.timestamps,
                options: segment.options,
                body: octets(9, segment.body.0 as usize),
            };
            let distance = |known: u32, number: u32| known.wrapping_sub(number).cast_signed().unsigned_abs();
            let (ours, theirs) = ([1_u32 << 30, 1 << 31][1 - to], [1_u32 << 30, 1 << 31][to]);
            let blind = distance(ours, injected.seq) > 1 << 29 || (distance(theirs, injected.ack) > 1 << 20 && !injected.flags.any(Flags::RST | Flags::SYN));
            if blind {
                net.inject(to, &injected);
            }
            got.extend(net.ends[1].read(u64::MAX).0);
        }
        net.run_until(ms(200_000));
        got.extend(net.ends[1].read(u64::MAX).0);
        prop_assert_eq!(got.len(), stream.0.len(), "{:?}", net.states());
        prop_assert!(got == stream.0);
    }
}
