//! Arrival of data: reassembly, duplicates, and the time of the acknowledgment (RFC 5681 §4.2, RFC
//! 2883).

use anabranch_core::{
    body::Body,
    units::{Duration, Instant},
};

use super::Receiver;
use crate::{receive_buffer::ReceiveBuffer, refusal::Refusal, rtt::RttEstimator};
use anabranch_wire::{
    segment::{Flags, Segment},
    seq::Seq,
};

/// Reports sent at once before others are delayed, because the third duplicate acknowledgment
/// indicates a loss (RFC 5681 §3.2).
const REPORTS_AT_ONCE: u8 = 3;
/// Longest delay of a report, as a fraction of the round-trip time.
const SHARE_OF_RTT: u64 = 20;

/// Progress of SACK compression for the segments beyond a gap.
#[derive(Debug)]
pub(super) struct Reports {
    /// RCV.NXT at the gap that this state is about.
    gap_at: Seq,
    /// Reports sent at once.
    at_once: u8,
    /// Segments whose report is delayed.
    waiting: u32,
    /// Latest time of the delayed report.
    until: Instant,
    /// The next acknowledgment omits the latest block.
    withheld: bool,
}

impl Default for Reports {
    fn default() -> Self {
        Self {
            gap_at: Seq::first(0),
            at_once: 0,
            waiting: 0,
            until: Instant::START,
            withheld: false,
        }
    }
}

/// The SACK block that an out-of-order segment extends or starts.
#[derive(Debug, Clone, Copy)]
struct ReportedBlock {
    /// It is one of the two blocks that changed last.
    grows: bool,
    /// It is new.
    alone: bool,
    /// The receive window has grown by the segment.
    widened: bool,
}

impl<B: Body> Receiver<B> {
    /// An in-order segment has arrived.
    #[inline]
    pub(crate) fn ack_in_order(&mut self, now: Instant, rtt: &RttEstimator) {
        let wait =
            !self.auto_read && self.settings.receiver.acks_wait_for_read() && self.wants_a_read();
        self.ack.in_order(now, rtt.rto(), wait);
    }

    /// The in-order segment just received has PSH or is not full.
    #[inline]
    pub(crate) fn on_push(&mut self) {
        self.ack.push();
        if self.auto_read {
            self.ack.all_read();
        }
    }

    /// Whether a timestamp is older than the last one by more than the tolerance.
    pub(crate) fn is_old(&self, value: u32) -> bool {
        let earliest = self
            .ts_recent
            .wrapping_sub(self.settings.receiver.paws_tolerance());
        value.wrapping_sub(earliest).cast_signed() < 0
    }

    /// Returns the reason if no correct peer has sent this number, which is outside the window. The
    /// peer's own SYN and earlier data may arrive again, and so may acknowledgments of a peer that
    /// has probed a closed window with an octet (RFC 9293 §3.8.6.1).
    pub(crate) fn outside(&self, flags: Flags, seq: Seq) -> Option<Refusal> {
        let first = Seq::first(self.cold.irs);
        let probe = u64::from(self.edge == self.nxt);
        let never_sent = seq > self.edge.saturating_add(probe) || seq < first;
        if flags.any(Flags::RST) {
            if never_sent {
                return Some(Refusal::BlindReset);
            }
            return (seq < self.nxt).then_some(Refusal::OldReset);
        }
        if flags.any(Flags::SYN) {
            return (seq != first).then_some(Refusal::BlindSyn);
        }
        never_sent.then_some(Refusal::OutsideWindow)
    }

    /// Counts a segment whose payload and FIN have all been received before, and reports it (RFC
    /// 2883).
    pub(crate) fn note_duplicate(&mut self, segment: &Segment<B>, seq: Seq) {
        let fin = u64::from(segment.flags.any(Flags::FIN));
        let end = seq + u64::from(segment.body.len()) + fin;
        if seq < end && end <= self.nxt {
            self.stats.duplicate_segments += u64::from(!segment.body.is_empty());
            self.report_duplicate(seq, end);
            self.ack.duplicate();
        }
    }

    /// Processes a FIN beyond a gap after the payload of its segment, which begins at `seq`. Its
    /// number is reported and repeated as that of an octet is.
    #[cold]
    pub(crate) fn on_early_fin(
        &mut self,
        now: Instant,
        (seq, fin): (Seq, Seq),
        rtt: &RttEstimator,
    ) {
        if fin != self.cold.peer_fin {
            // It exceeds the window, or contradicts an earlier one.
            self.ack.at_once();
            return;
        }
        let end = fin + 1;
        let receive = self.receive();
        let block = ReportedBlock {
            grows: receive.grows_latest(fin, end),
            alone: receive.stands_alone(fin, end),
            widened: false,
        };
        if !receive.insert_fin(fin) {
            // The payload before it is in the report if it is a duplicate too.
            let start = if self.duplicate { seq } else { fin };
            self.report_duplicate(start, end);
            self.ack.at_once();
        } else if seq == fin {
            self.report_out_of_order(now, block, rtt);
        }
    }

    /// Reports octets received twice with the next acknowledgment (RFC 2883).
    fn report_duplicate(&mut self, start: Seq, end: Seq) {
        if self.agreed.sack && self.settings.dsack {
            self.receive().note_duplicate(start, end);
            self.duplicate = true;
        }
    }

    pub(super) fn receive(&mut self) -> &mut ReceiveBuffer<B> {
        self.cold.receive.get_or_insert_default()
    }

    fn take_contiguous(&mut self) -> Option<(B, Seq)> {
        let rcv_nxt = self.nxt;
        self.receive().take(rcv_nxt)
    }

    /// Processes the octets `seq..end` of a segment.
    pub(crate) fn on_data(
        &mut self,
        now: Instant,
        segment: &Segment<B>,
        (seq, end): (Seq, Seq),
        rtt: &RttEstimator,
    ) {
        if end <= self.nxt {
            self.note_duplicate(segment, seq);
            self.ack.at_once();
            return;
        }
        if self.agreed.tuned && (seq <= self.nxt || self.settings.receiver.accounts_for_buffer()) {
            self.sample_echo(now, segment);
        }
        let start = seq.max(self.nxt);
        let fits = "a part of a body is as short as a body";
        let body = segment.body.slice(
            u32::try_from(start.since(seq)).expect(fits),
            u32::try_from(end.since(start)).expect(fits),
        );
        if start > self.nxt {
            // RFC 5681 §4.2: out of order, so acknowledge at once.
            self.stats.out_of_order_segments += 1;
            let before = if self.settings.receiver.accounts_for_buffer() {
                self.beyond()
            } else {
                end.since(start)
            };
            let (grows, alone) = if self.compresses_reports() {
                let receive = self.receive();
                (
                    receive.grows_latest(start, end),
                    receive.stands_alone(start, end),
                )
            } else {
                (true, false)
            };
            let new = self.receive().insert(start, &body);
            if !new {
                self.stats.duplicate_segments += 1;
                self.report_duplicate(start, end);
            }
            self.gaps = true;
            // A segment beyond a gap occupies the buffer after the window has grown, an in-order one
            // before (measured). Without SACK the window stays, because an acknowledgment that
            // changes it is no duplicate (RFC 5681 §2; Linux: measured).
            let widened =
                self.agreed.tuned && self.agreed.sack && self.grow_receive_window(segment, before);
            if new {
                let block = ReportedBlock {
                    grows,
                    alone,
                    widened,
                };
                self.report_out_of_order(now, block, rtt);
            } else {
                // RFC 2883 §4: reported with the very next acknowledgment.
                self.ack.at_once();
            }
            return;
        }
        self.nxt = end;
        self.deliver(&body);
        // Data beyond the gap is delivered after this, and counts in the next round trip.
        let taken = self.stats.delivered_bytes;
        if self.agreed.tuned {
            self.sample_window(now);
            self.grow_receive_window(segment, self.occupied(segment));
        }
        if self.gaps {
            while let Some((body, end)) = self.take_contiguous() {
                self.nxt = end;
                self.deliver(&body);
            }
            self.gaps = self.receive().has_gaps() || self.cold.peer_fin != Seq::END;
            self.note_delivered(self.nxt.since(start));
            // RFC 5681 §4.2: it fills a gap, in full or in part.
            let quick = self.ack.filled(now, rtt.rto());
            if self.gaps && !quick {
                self.count_report_of_fill();
            }
        } else {
            self.ack_in_order(now, rtt);
            if segment.flags.any(Flags::PSH) || segment.body.len() < self.smss {
                self.on_push();
            }
        }
        if self.agreed.tuned {
            self.tune_receive_window(now, taken);
        }
    }

    /// Whether reports of out-of-order segments may be delayed
    /// ([`Receiver::sack_compression`](crate::policy::Receiver::sack_compression)).
    fn compresses_reports(&self) -> bool {
        self.settings.receiver.sack_compression().is_some() && self.agreed.sack
    }

    /// Counts the acknowledgment of a partly filled gap, which reports the rest, as the first
    /// report sent at once
    /// ([`Receiver::sack_compression`](crate::policy::Receiver::sack_compression)).
    fn count_report_of_fill(&mut self) {
        if self.compresses_reports() {
            let gap_at = self.nxt;
            self.cold.extras().reports = Reports {
                gap_at,
                at_once: 1,
                ..Reports::default()
            };
        }
    }

    /// Reports an out-of-order segment at once (RFC 5681 §4.2), or together with later ones
    /// ([`Receiver::sack_compression`](crate::policy::Receiver::sack_compression)).
    ///
    /// If a block other than the two that changed last changes, the delayed reports are sent,
    /// because an acknowledgment has room for three blocks. They omit a new block, which the next
    /// acknowledgment has.
    fn report_out_of_order(&mut self, now: Instant, block: ReportedBlock, rtt: &RttEstimator) {
        let Some(compression) = self
            .settings
            .receiver
            .sack_compression()
            .filter(|_| self.agreed.sack && !self.ack.quick_out_of_order(block.widened))
        else {
            self.ack.at_once();
            return;
        };
        let rcv_nxt = self.nxt;
        let seen = self.receive_rtt();
        let delay = [rtt.srtt(), seen]
            .into_iter()
            .filter(|rtt| !rtt.is_zero())
            .map(|rtt| rtt / SHARE_OF_RTT)
            .fold(compression.delay, Duration::min)
            + compression.slack;
        let reports = &mut self.cold.extras().reports;
        if reports.gap_at != rcv_nxt {
            *reports = Reports {
                gap_at: rcv_nxt,
                ..Reports::default()
            };
        }
        if reports.at_once < REPORTS_AT_ONCE {
            reports.at_once += 1;
            self.ack.at_once();
            return;
        }
        if self.ack.deadline() != reports.until {
            // The delayed report has been sent.
            reports.waiting = 0;
            reports.until = now.saturating_add(delay);
        }
        reports.waiting += 1;
        if reports.waiting >= compression.reports || (!block.grows && reports.waiting > 1) {
            reports.withheld = !block.grows && block.alone;
            self.ack.at_once();
        } else {
            self.ack.by(reports.until);
            reports.until = self.ack.deadline();
        }
    }

    /// Number of the latest blocks that the next acknowledgment omits.
    pub(super) fn take_withheld(&mut self) -> usize {
        let extras = self.cold.extras.as_mut();
        usize::from(extras.is_some_and(|extras| std::mem::take(&mut extras.reports.withheld)))
    }

    #[expect(
        clippy::inline_always,
        reason = "measured: a call costs as much as what is done"
    )]
    #[inline(always)]
    pub(crate) fn deliver(&mut self, body: &B) {
        if self.auto_read {
            self.stats.delivered_bytes += u64::from(body.len());
        } else {
            self.receive().push_ready(body.clone());
        }
    }
}
