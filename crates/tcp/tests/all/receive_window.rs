//! The receive window with autotuning: its growth, the data that occupies it, and the
//! acknowledgments that wait for room.

use crate::support;

use anabranch_core::units::{Bytes, text::Limit};
use anabranch_tcp::{DelayedAck, Profile, Receiver as ReceiverPolicy, Settings};
use support::receiver::{FULL, Receiver, Said};

fn settings() -> Settings {
    let linux = Profile::named("linux-6.18").expect("it exists").settings;
    Settings {
        receive_window: linux.receive_window,
        receiver: ReceiverPolicy::Linux,
        mss: FULL,
        delayed_ack: DelayedAck::Off,
        timestamps: true,
        receive_autotuning: true,
        ..Profile::named("rfc").expect("it exists").settings
    }
}

/// Capacity of the buffer at the start, in octets.
fn whole() -> u32 {
    u32::try_from(settings().receiver.tuning_start(u64::from(FULL))).expect("it is small")
}

/// `window` as the header field represents it, in steps of the scale.
fn rounded(window: u32) -> u32 {
    window.next_multiple_of(1 << settings().window_shift())
}

/// A receiver whose window has grown as far as possible without a loss, by segments 0 to 9.
fn grown(settings: &Settings) -> Receiver {
    let mut receiver = Receiver::new(settings);
    let said = receiver.feed(60, 0..10);
    assert_eq!(said.last().map(|s| s.window), Some(rounded(whole() - FULL)));
    receiver
}

/// Linux 6.18 offers 80,512 octets with each of segments 6 to 31 of a flow. Detects a receiver that
/// keeps the offered edge as rounded: the edge then moves by less than a segment, and every second
/// acknowledgment offers a segment less.
#[test]
fn a_constant_window_is_offered_without_loss_by_rounding() {
    let mut receiver = grown(&settings());
    let said = receiver.feed(61, 10..30);
    assert_eq!(said.len(), 20);
    assert!(said.iter().all(|s| s.window == rounded(whole() - FULL)));
}

/// Linux 6.12 with a buffer of 524,280 octets, whose scale is 3, offers 65,160 octets in the
/// SYN-ACK, then 64,088 and 2,896 more with each segment, up to 80,480. Detects a window that
/// begins at 65,536.
#[test]
fn a_window_begins_a_segment_below_the_buffer() {
    let settings = Settings {
        receive_window: Limit::Bytes(Bytes::new(524_280 / 2)),
        ..settings()
    };
    assert_eq!(settings.receive_window_of_syn(u64::from(FULL)), 65_160);
    assert_eq!(settings.window_shift(), 3);
    let said = Receiver::new(&settings).feed(60, 0..10);
    let windows: Vec<u32> = said.iter().map(|said| said.window).collect();
    assert_eq!(windows[..5], [66_984, 69_880, 72_776, 75_672, 78_568]);
    assert!(
        windows[5..]
            .iter()
            .all(|window| window.abs_diff(80_480) <= 8)
    );
}

/// 21 segments in a round trip after 11 in the previous one: 2 · 21 · (1 + 2 · 10 / 11) segments,
/// minus one. Linux 6.18 offers 169,984 octets in units of 128. Detects a rounded target.
#[test]
fn the_target_of_a_round_trip_is_not_rounded() {
    let mut receiver = Receiver::new(&Settings {
        receive_window: Limit::Bytes(Bytes::new(4 << 20)),
        ..settings()
    });
    receiver.feed(60, 0..10);
    receiver.feed(111, 10..31);
    receiver.feed(162, 31..32);
    let said = receiver.feed(163, 32..100);
    assert_eq!(said.last().map(|s| s.window), Some(169_984));
}

/// The same with Linux 6.12: 2 · 21 + 16 segments instead of 2 · 21. Detects the window of Linux
/// 6.18.
#[test]
fn linux_6_12_offers_16_segments_more() {
    let mut receiver = Receiver::new(&Settings {
        receiver: ReceiverPolicy::Linux6_12,
        receive_window: Limit::Bytes(Bytes::new(4 << 20)),
        ..settings()
    });
    receiver.feed(60, 0..10);
    receiver.feed(111, 10..31);
    receiver.feed(162, 31..32);
    let said = receiver.feed(163, 32..140);
    let segments = (2 * 21 + 16) * (11 + 2 * 10);
    let window = segments * FULL / 11 - FULL;
    assert_eq!(
        said.last().map(|s| s.window),
        Some(window.next_multiple_of(128))
    );
}

/// Data buffered after a gap is delivered after the segment that fills the gap, which ends a round
/// trip. It therefore counts in the next round trip, together with the data that arrives then.
#[test]
fn data_after_a_gap_counts_in_the_next_round_trip() {
    let mut receiver = Receiver::new(&Settings {
        mss: 1000,
        ..settings()
    });
    let mut feed = |at, numbers: std::ops::Range<u32>| {
        let said = receiver.feed(at, numbers);
        said.last().expect("each is acknowledged").window
    };
    // A round trip of 50 ms: 10, 20 and 40 segments, for which 2 · 40 · (1 + 2 · 20 / 20) are
    // offered.
    feed(60, 0..10);
    feed(111, 10..30);
    feed(162, 30..70);
    assert!(feed(213, 70..71) < 240_000);
    // The next segment is lost; eighty more arrive.
    let before = feed(214, 72..152);
    assert!(before <= 240_000, "{before}");
    // It ends a round trip of two segments; the next has the eighty and forty more.
    feed(264, 71..72);
    feed(265, 152..191);
    assert!(feed(315, 191..192) <= 240_000);
    let grown = feed(316, 192..900);
    let target = 2 * 120 * (1 + 2 * 80 / 40) * 1000;
    assert!(grown.abs_diff(target) < 60_000, "{grown}");
}

/// Measured on Linux 6.18: if 16 segments are read in a round trip while three more are buffered,
/// 13 count. The window is smaller than it would be for 16.
#[test]
fn unread_data_does_not_count_in_the_round_trip() {
    let mut receiver = Receiver::new(&settings());
    receiver.feed(60, 0..10);
    // The second round trip: eleven.
    receiver.feed(111, 10..11);
    receiver.feed(112, 11..26);
    // Three wait for segment 26, which ends the third round trip: 16 are read with it.
    receiver.feed(160, 27..30);
    receiver.feed(162, 26..27);
    let said = receiver.feed(163, 30..34);
    // 2 · 13 · (1 + 2 · 2 / 11) segments are fewer than the buffer holds; 2 · 16 · (1 + 2 · 5 / 11)
    // are more.
    assert_eq!(said.last().map(|s| s.window), Some(rounded(whole())));
}

/// Detects a receiver that samples only segments that arrive in order.
#[test]
fn segments_beyond_a_gap_yield_round_trip_samples() {
    let offered = |age| {
        let mut receiver = Receiver::new(&Settings {
            timestamps: true,
            ..settings()
        });
        receiver.feed_aged(60, 50, 0..10);
        receiver.feed_aged(111, 50, 10..30);
        // 45 ms after the last measurement: less than a round trip, unless one of 41 ms is measured
        // beyond the gap.
        receiver.feed_aged(155, age, 31..32);
        receiver.feed_aged(156, 50, 30..31);
        receiver
            .feed_aged(157, 50, 32..100)
            .last()
            .expect("each is acknowledged")
            .window
    };
    assert_eq!(offered(50), rounded(whole()));
    // 19 after 11 in a round trip: 2 · 19 · (1 + 2 · 8 / 11) segments.
    assert!(offered(41) > whole() * 3 / 2);
}

/// Measured on Linux 6.18: 7,015 · 512 octets are offered before the first loss, 7,018 · 512 after
/// it.
#[test]
fn after_the_first_gap_the_whole_buffer_is_offered() {
    let mut receiver = grown(&settings());
    let beyond = receiver.feed(61, 11..13);
    assert!(beyond.iter().all(|said| said.ack == 10), "{beyond:?}");
    // The delivered octets are unread when this acknowledgment is sent, and read by the next one.
    let said = receiver.feed(62, 10..11);
    let unread = Said {
        ack: 13,
        window: rounded(whole() - 3 * FULL),
    };
    assert_eq!(said, [unread]);
    let said = receiver.feed(63, 13..14);
    assert_eq!(said.last().map(|said| said.window), Some(rounded(whole())));
}

/// Detects a window that starts at the next expected octet, regardless of the data in the buffer.
#[test]
fn data_beyond_a_gap_occupies_the_buffer() {
    let mut receiver = grown(&settings());
    receiver.feed(61, 11..13);
    receiver.feed(62, 10..11);
    // Two gaps, ten segments after each.
    receiver.feed(63, (14..24).chain(25..35));
    let said = receiver.feed(64, 13..14);
    assert_eq!(said.last().map(|said| said.ack), Some(24));
    let said = receiver.feed(65, 35..36);
    let rest = Said {
        ack: 24,
        window: rounded(whole() - 11 * FULL),
    };
    assert_eq!(said, [rest]);
}

/// RFC 9293 §3.8.6.2.2: the window's right edge never moves back.
#[test]
fn the_edge_never_moves_back() {
    let mut receiver = grown(&settings());
    let mut edge = 0;
    for number in (11..40)
        .chain(41..60)
        .chain(10..11)
        .chain(61..80)
        .chain(40..41)
    {
        for said in receiver.feed(61, [number]) {
            assert!(
                said.ack * FULL + said.window >= edge,
                "{said:?} after {edge}"
            );
            edge = said.ack * FULL + said.window;
        }
    }
}

/// Every second segment is acknowledged at once until the whole buffer has been offered. After that
/// it is acknowledged once it has been read, because an earlier acknowledgment could offer less
/// than the last one. Detects an acknowledgment sent at once, and one that waits from the start.
#[test]
fn with_the_whole_buffer_offered_acknowledgments_wait_for_reads() {
    let mut receiver = Receiver::new(&Settings {
        delayed_ack: Profile::named("rfc")
            .expect("it exists")
            .settings
            .delayed_ack,
        ..settings()
    });
    receiver.end.set_auto_read(false);
    for number in 0..10 {
        receiver.feed(60, [number]);
        receiver.read(60);
    }
    assert_eq!(receiver.feed(61, 10..11), []);
    receiver.read(61);
    assert_eq!(
        receiver.feed(61, 11..12).len(),
        1,
        "a segment less than the buffer is offered"
    );
    receiver.read(61);
    receiver.feed(62, 13..14);
    receiver.feed(62, 12..13);
    receiver.read(62);
    receiver.feed(63, 14..15);
    receiver.read(63);
    assert_eq!(
        receiver.feed(63, 15..16).len(),
        1,
        "it offers more than the one that filled the gap"
    );
    receiver.read(63);
    // Two unread segments could offer less in any case; after the read the whole buffer is offered.
    let at_once = receiver.feed(64, 16..18).len();
    let after = receiver.read(64);
    assert_eq!((at_once, after.len()), (0, 1));
    receiver.feed(65, 18..19);
    receiver.read(65);
    let at_once = receiver.feed(65, 19..20);
    let after = receiver.read(65);
    assert_eq!(at_once, []);
    let whole_buffer = Said {
        ack: 20,
        window: rounded(whole()),
    };
    assert_eq!(after, [whole_buffer]);
}

/// An acknowledgment waits for the read at most until the delayed-ACK timeout.
#[test]
fn an_acknowledgment_waits_for_the_read_until_the_timeout() {
    let rfc = Profile::named("rfc").expect("it exists").settings;
    let mut receiver = Receiver::new(&Settings {
        delayed_ack: rfc.delayed_ack,
        ..settings()
    });
    receiver.end.set_auto_read(false);
    receiver.feed(60, 0..1);
    // More unread data than the room that is left: each acknowledgment could offer less than its
    // predecessor.
    let mut left = 0;
    for number in 1..40 {
        left += receiver.feed(61, [number]).len();
    }
    assert!(left < 10, "{left}");
    let due = receiver.end.deadline();
    assert!(due < anabranch_core::units::Instant::from_millis(600));
    receiver.end.on_deadline(due);
    assert!(receiver.end.poll_transmit(due).is_some());
}

/// Without timestamps the arrival of a whole window measures the round trip. Detects a receiver that
/// keeps the round-trip time of the handshake, 50 ms, or measures none.
#[test]
fn without_timestamps_a_window_measures_the_round_trip() {
    let mut receiver = Receiver::new(&Settings {
        timestamps: false,
        receive_window: Limit::Bytes(Bytes::new(4 << 20)),
        ..settings()
    });
    // The first segment meets a window of 45 segments.
    receiver.feed(60, 0..10);
    receiver.feed(111, 10..40);
    let said = receiver.feed(165, 40..44);
    assert!(said.last().is_some_and(|said| said.window < whole()));
    let said = receiver.feed(180, 44..80);
    assert!(
        said.last()
            .is_some_and(|said| said.window > whole() * 5 / 4)
    );
}

/// RFC 5681 §2: an acknowledgment that changes the window is no duplicate, so without SACK segments
/// beyond a gap leave the window as it is (Linux 6.12: a constant window in 230 acknowledgments
/// after a loss in slow start).
#[test]
fn without_sack_segments_beyond_a_gap_keep_the_window() {
    let windows = |sack| {
        let mut receiver = Receiver::new(&Settings {
            sack,
            receive_window: Limit::Bytes(Bytes::new(4 << 20)),
            ..settings()
        });
        receiver.feed(60, 0..10);
        receiver.feed(111, 10..31);
        receiver.feed(162, 31..32);
        let said = receiver.feed(163, 33..60);
        assert!(said.iter().all(|said| said.ack == 32), "{said:?}");
        (said[0].window, said[said.len() - 1].window)
    };
    let (first, last) = windows(false);
    assert_eq!(first, last);
    let (first, last) = windows(true);
    assert!(first < last, "{first} and {last}");
}
