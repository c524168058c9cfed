//! The runs of the fuzz target `fec` reach their goals: packets are recovered, and changed
//! redundancy is refused.

use crate::support::any_redundancy;

use any_redundancy::{CHANGED, LATE, LOST, REDUNDANCY_LOST, TWICE, UNTAGGED, WHOLE, run};
use proptest::prelude::*;

/// The octet that selects a code and groups of `group` packets. Its two lowest bits only select the
/// code.
fn how(code: u8, group: u8) -> u8 {
    let high = (group - 1) << 2;
    (high..high + 4)
        .find(|how| how % 3 == code)
        .expect("one of three in a row")
}

/// The second packet of a group of three is lost. Detects a run whose receiver refuses all
/// redundancy.
#[test]
fn a_lost_packet_is_recovered() {
    for code in 0..3 {
        let stats = run(&[
            how(code, 3),
            WHOLE,
            WHOLE | LOST,
            WHOLE,
            WHOLE,
            WHOLE,
            WHOLE,
        ]);
        assert_eq!(stats.recovered_packets, 1, "code {code}");
        assert_eq!(stats.redundant_refused, 0, "code {code}");
    }
}

/// An octet of the redundancy's content is changed. Detects receivers that do not verify their
/// solution.
#[test]
fn changed_redundancy_is_refused() {
    for code in 0..3 {
        let lost = [how(code, 3), WHOLE, WHOLE | LOST];
        let group = [WHOLE | CHANGED, 0x47, 5, 0x4f, 7, WHOLE, WHOLE];
        let stats = run(&[lost.as_slice(), &group].concat());
        assert_eq!(stats.recovered_packets, 0, "code {code}");
        assert!(stats.redundant_refused > 0, "code {code}");
    }
}

proptest! {
    #[test]
    fn only_sent_packets_are_recovered(
        how: u8,
        events in prop::collection::vec(
            (
                prop::bits::u8::masked(LOST | CHANGED | REDUNDANCY_LOST | UNTAGGED | LATE | TWICE),
                prop::sample::select(vec![0, WHOLE, WHOLE, WHOLE]),
            ),
            0..80,
        ),
    ) {
        let octets: Vec<u8> = events.into_iter().map(|(what, whole)| what | whole).collect();
        run(&[&[how], octets.as_slice()].concat());
    }
}
