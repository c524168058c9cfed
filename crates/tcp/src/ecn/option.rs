//! The AccECN option at either end (RFC 9768 §3.2.3): counters of octets received, and the marks
//! that the peer's counters report.
//!
//! It follows the recommended simple scheme of §3.2.3.3: an acknowledgment carries the option if a
//! counter has changed since the last option, with a field for each counter that has ever changed.
//! The handshake tests the path with all three (§3.2.3.2.1).
//!
//! # Differs from Linux
//! - Linux sends no options until it has seen one of the peer's; here they are sent in any case, as
//!   RFC 9768 §3.2.3.2.3 requires.
//!
//! # Not implemented
//! - Room for the option in a segment full of payload: if both ends send at the same time, such
//!   segments report marks by the ACE field only.
//! - Disabling the option when segments with it are lost (§3.2.3.2.2), except on a retransmitted
//!   SYN/ACK; a test for a count of octets that grows while the count of packets does not
//!   (§3.2.3.2.5).

use anabranch_core::packet::Ecn;

use anabranch_wire::{
    AccEcn,
    accecn::{Counter, Order},
};

/// Counters reported to the peer. The option has the low 24 bits of each.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OptionWriter {
    /// r.e0b, r.ceb and r.e1b.
    received: [u32; 3],
    /// Counters that have ever changed, and those changed since the last option was sent.
    moved: [bool; 3],
    news: [bool; 3],
    /// The next option has all three counters, to test the path.
    test: bool,
}

/// Counters that the peer reports.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OptionReader {
    /// s.e0b, s.ceb and s.e1b as the peer last reported them.
    told: [u32; 3],
    /// Octets counted as marked because of the ACE field, which s.ceb has not reported yet.
    guessed: u64,
    /// Octets acknowledged since the last option; `None` before the first option.
    bare: Option<u64>,
    /// A middlebox zeroes the peer's options (§3.2.3.2.4).
    zeroed: bool,
}

/// Initial values (RFC 9768 §3.2.1): not zero for counters whose zeroing must be noticed.
const FIRST: [u32; 3] = [1, 0, 1];

/// Octets within which each counter is reported at least once (RFC 9768 §3.2.3.3). If no option has
/// arrived for that many octets, the path removes them.
const MOST_BARE: u64 = 1 << 22;

impl Default for OptionWriter {
    fn default() -> Self {
        Self {
            received: FIRST,
            moved: [false; 3],
            news: [false; 3],
            test: true,
        }
    }
}

impl Default for OptionReader {
    fn default() -> Self {
        Self {
            told: FIRST,
            guessed: 0,
            bare: None,
            zeroed: false,
        }
    }
}

/// Report of marked octets in an acknowledgment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OptionReport {
    /// A newer report has arrived already.
    Superseded,
    /// The number of octets.
    Exactly(u64),
    /// No count of octets: the ACE field counts packets. If options arrive, one reports the wraps
    /// of the field, so the field is not assumed to have wrapped.
    ByPackets {
        /// No options arrive.
        blind: bool,
    },
}

impl OptionWriter {
    /// Counts payload that arrived with `ecn` (§3.2.3): all acceptable payload, new or not.
    pub(crate) fn on_payload(&mut self, ecn: Ecn, octets: u32) {
        let counter = match ecn {
            Ecn::NotEct => return,
            Ecn::Ect0 => Counter::Ect0,
            Ecn::Ce => Counter::Ce,
            Ecn::Ect1 => Counter::Ect1,
        } as usize;
        if octets > 0 {
            self.received[counter] = self.received[counter].wrapping_add(octets);
            self.moved[counter] = true;
            self.news[counter] = true;
        }
    }

    /// The last option was not sent: the next one has all counters that have ever changed.
    pub(crate) const fn repeat(&mut self) {
        self.news = self.moved;
    }

    /// Returns the option of the next segment, in whole words and at most `room` octets, if one is
    /// due.
    pub(crate) fn take(&mut self, room: u32) -> Option<AccEcn> {
        let any = |flags: [bool; 3]| flags.into_iter().any(|flag| flag);
        if !self.test && !any(self.news) {
            return None;
        }
        let ect1 = Counter::Ect1 as usize;
        let order = if self.moved[ect1] && !self.moved[Counter::Ect0 as usize] {
            Order::Ect1First
        } else {
            Order::Ect0First
        };
        let wanted = |flags: [bool; 3]| {
            let place = order
                .counters()
                .into_iter()
                .rposition(|counter| flags[counter as usize]);
            place.map_or(0, |place| place + 1)
        };
        let most = if self.test { 3 } else { wanted(self.moved) };
        // §3.2.3.3: no counter changed since the last option may be left out.
        let least = wanted(self.news);
        let fields = order
            .counters()
            .map(|counter| self.received[counter as usize]);
        let mut fitting = (least..=most)
            .rev()
            .map(|count| AccEcn::new(order, &fields[..count]));
        let option = fitting.find(|option| option.size() <= room)?;
        self.test = false;
        self.news = [false; 3];
        Some(option)
    }
}

impl OptionReader {
    /// The peer's first option may be present: the test of §3.2.3.2.4.
    pub(crate) fn on_first(&mut self, option: Option<AccEcn>) {
        let Some(option) = option else {
            return;
        };
        self.zeroed |= [Counter::Ect0, Counter::Ect1]
            .into_iter()
            .any(|counter| option.field(counter) == Some(0));
        if !self.zeroed {
            self.bare = Some(0);
        }
    }

    /// Reads the option, if any, of an acknowledgment of `acked` octets.
    pub(crate) fn read(&mut self, option: Option<AccEcn>, acked: u64) -> OptionReport {
        let Some(option) = option.filter(|_| !self.zeroed) else {
            // No option is due if no counter has changed, as for retransmitted data.
            let blind = self.bare.as_mut().is_none_or(|bare| {
                *bare += acked;
                *bare > MOST_BARE
            });
            return OptionReport::ByPackets { blind };
        };
        let step = |now: u32, before: u32| now.wrapping_sub(before) & AccEcn::MASK;
        let mut news = [0; 3];
        for counter in [Counter::Ect0, Counter::Ce, Counter::Ect1] {
            if let Some(field) = option.field(counter) {
                news[counter as usize] = step(field, self.told[counter as usize]);
            }
        }
        // §3.2.3.1: the smallest increment that fits, unless this is an older option that arrived
        // late. An acknowledgment without progress cannot report more than half of the range.
        if self.bare.is_some() && acked == 0 && news.iter().any(|&step| step > AccEcn::MASK / 2) {
            return OptionReport::Superseded;
        }
        self.bare = Some(0);
        for (told, step) in self.told.iter_mut().zip(news) {
            *told = told.wrapping_add(step);
        }
        if option.field(Counter::Ce).is_none() {
            return OptionReport::ByPackets { blind: false };
        }
        let marked = u64::from(news[Counter::Ce as usize]);
        // Octets already counted as marked are not reported again.
        let known = marked.min(self.guessed);
        self.guessed -= known;
        OptionReport::Exactly(marked - known)
    }

    /// Counts `octets` as marked because of the ACE field.
    pub(crate) const fn guess(&mut self, octets: u64) {
        self.guessed += octets;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(option: AccEcn) -> [Option<u32>; 3] {
        [Counter::Ect0, Counter::Ce, Counter::Ect1].map(|counter| option.field(counter))
    }

    #[test]
    fn rfc_9768_3_2_3_3_examples_of_the_simple_scheme() {
        let mut state = OptionWriter::default();
        let test = state.take(40).expect("the handshake tests the path");
        assert_eq!(fields(test), [Some(1), Some(0), Some(1)]);
        // No payload has arrived.
        assert_eq!(state.take(40), None);
        // ECT(0) alone: one field.
        state.on_payload(Ecn::Ect0, 1000);
        let option = state.take(40).expect("it moved");
        assert_eq!(
            (fields(option), option.size()),
            ([Some(1001), None, None], 8)
        );
        assert_eq!(state.take(40), None);
        // After the first mark two counters, from then on.
        state.on_payload(Ecn::Ce, 500);
        let option = state.take(40).expect("it moved");
        assert_eq!(fields(option), [Some(1001), Some(500), None]);
        state.on_payload(Ecn::Ect0, 1);
        let option = state.take(40).expect("it moved");
        assert_eq!(fields(option), [Some(1002), Some(500), None]);
        // Pure acknowledgments and packets without ECT do not count.
        state.on_payload(Ecn::Ce, 0);
        state.on_payload(Ecn::NotEct, 9);
        assert_eq!(state.take(40), None);
    }

    #[test]
    fn ect_1_alone_is_reported_in_the_other_order() {
        let mut state = OptionWriter::default();
        state.take(40);
        state.on_payload(Ecn::Ect1, 10);
        let option = state.take(8).expect("it fits");
        assert_eq!(
            (option.order(), fields(option)),
            (Order::Ect1First, [None, None, Some(11)])
        );
    }

    #[test]
    fn rfc_9768_3_2_3_3_changed_counters_are_not_cut_off() {
        let mut state = OptionWriter::default();
        state.take(40);
        for ecn in [Ecn::Ect0, Ecn::Ect1, Ecn::Ce] {
            state.on_payload(ecn, 10);
        }
        // All three have changed and do not fit: no option is sent, and no change is lost.
        assert_eq!(state.take(8), None);
        assert_eq!(
            state.take(12).map(fields),
            Some([Some(11), Some(10), Some(11)])
        );
        // Now only two have changed, and the last may be left out.
        state.on_payload(Ecn::Ce, 5);
        assert_eq!(state.take(8).map(fields), Some([Some(11), Some(15), None]));
    }

    #[test]
    fn counters_wrap_at_24_bits_in_both_directions() {
        let mut receiver = OptionWriter::default();
        let mut sender = OptionReader::default();
        let mut told = 0;
        // 100 marked segments of 1 MB: six wraps.
        for _ in 0..100 {
            receiver.on_payload(Ecn::Ce, 1_000_000);
            let option = receiver.take(40);
            let OptionReport::Exactly(octets) = sender.read(option, 1000) else {
                panic!("the field is there")
            };
            told += octets;
        }
        assert_eq!(told, 100_000_000);
    }

    #[test]
    fn an_older_option_that_arrives_late_is_ignored() {
        let (mut receiver, mut sender) = (OptionWriter::default(), OptionReader::default());
        receiver.on_payload(Ecn::Ce, 100);
        let first = receiver.take(40);
        receiver.on_payload(Ecn::Ce, 100);
        let second = receiver.take(40);
        assert_eq!(sender.read(second, 1000), OptionReport::Exactly(200));
        assert_eq!(sender.read(first, 0), OptionReport::Superseded);
        receiver.on_payload(Ecn::Ce, 1);
        assert_eq!(
            sender.read(receiver.take(40), 1000),
            OptionReport::Exactly(1)
        );
    }

    #[test]
    fn marks_guessed_without_an_option_are_not_counted_twice() {
        let (mut receiver, mut sender) = (OptionWriter::default(), OptionReader::default());
        receiver.on_payload(Ecn::Ce, 1000);
        receiver.take(40);
        // The path removed the option.
        assert_eq!(
            sender.read(None, 1000),
            OptionReport::ByPackets { blind: true }
        );
        sender.guess(1000);
        receiver.on_payload(Ecn::Ce, 300);
        assert_eq!(
            sender.read(receiver.take(40), 1000),
            OptionReport::Exactly(300)
        );
        assert_eq!(sender.guessed, 0);
        // The excess of the guess is deducted from later reports.
        sender.guess(1000);
        receiver.on_payload(Ecn::Ce, 600);
        assert_eq!(
            sender.read(receiver.take(40), 1000),
            OptionReport::Exactly(0)
        );
        receiver.on_payload(Ecn::Ce, 600);
        assert_eq!(
            sender.read(receiver.take(40), 1000),
            OptionReport::Exactly(200)
        );
    }

    #[test]
    fn without_options_the_field_may_have_wrapped() {
        let mut sender = OptionReader::default();
        sender.on_first(Some(AccEcn::new(Order::Ect0First, &[1, 0, 1])));
        assert_eq!(
            sender.read(None, 10_000),
            OptionReport::ByPackets { blind: false }
        );
        assert_eq!(
            sender.read(None, MOST_BARE),
            OptionReport::ByPackets { blind: true }
        );
    }

    #[test]
    fn rfc_9768_3_2_3_2_4_zeroed_options_are_ignored() {
        let mut sender = OptionReader::default();
        sender.on_first(Some(AccEcn::new(Order::Ect0First, &[0, 0, 0])));
        let later = AccEcn::new(Order::Ect0First, &[1001, 1000]);
        assert_eq!(
            sender.read(Some(later), 1000),
            OptionReport::ByPackets { blind: true }
        );
        // Other initial values than ours are accepted.
        let mut sender = OptionReader::default();
        sender.on_first(Some(AccEcn::new(Order::Ect0First, &[7, 0, 9])));
        assert_eq!(sender.read(Some(later), 1000), OptionReport::Exactly(1000));
    }
}
