//! Detection of reordering, repairs by tail loss probes, and spurious reductions from
//! acknowledgments (RFC 8985 §6.2, §7.4, RFC 2883, RFC 5682, RFC 3522), and the response (RFC
//! 4015).

use anabranch_congestion::{Signal, Spurious};

use super::{
    AckSummary, Detection, Pending, Phase, Recovery, Scope,
    frto::{AckObservation, Frto, Verdict},
    rack::{Echo, Order},
    tlp::{Answer, Probing},
};
use crate::{clock::timestamp, window_log::WindowChange};

impl Recovery {
    /// RFC 8985 §6.2 steps 1 to 3, and the duplicate threshold that adapts to reordering.
    pub(super) fn on_delivered(&mut self, scope: &Scope<'_>, summary: &AckSummary) {
        let Some(extensions) = &mut self.extensions else {
            return;
        };
        let delivered = &summary.delivered;
        if delivered.fresh == 0 {
            return;
        }
        let echo = summary
            .echo
            .zip(delivered.again)
            .map(|(echoed, again)| Echo {
                echoed,
                resent: timestamp(again.sent_at),
            });
        let (una, min_rtt) = (summary.prior.una, scope.rtt.min_rtt());
        let order = if scope.settings.timers.rack_by_number() {
            Order::Number(una + summary.acked)
        } else {
            Order::Transmission
        };
        let fack = extensions.rack.fack();
        let behind = extensions
            .rack
            .on_delivered(scope.now, delivered, una, min_rtt, echo, order);
        self.remedy_on_delivered(scope, summary, fack, behind);
        let Some(extensions) = &mut self.extensions else {
            return;
        };
        if self.reports.is_sack() {
            if let Some(octets) = behind {
                let segments = octets.div_ceil(u64::from(scope.smss));
                extensions.reordering.on_reordered(segments);
            }
        } else if !self.reports.is_counted()
            && summary.prior.phase == Phase::Open
            && delivered.once.is_some()
        {
            let segments = u64::from(summary.prior.dup_acks) + 1;
            extensions.reordering.on_reordered(segments);
        }
    }

    /// Handles a duplicate reported by the peer (RFC 2883).
    pub(super) fn on_dsack(&mut self, scope: &mut Scope<'_>, summary: &AckSummary) {
        let Some(range) = &summary.dsack else {
            return;
        };
        scope.stats.duplicates_reported = scope.stats.duplicates_reported.wrapping_add(1);
        if u64::from(scope.stats.duplicates_reported) > scope.stats.retransmitted_packets {
            // The network has duplicated some (measured of Linux 6.12: it ignores these reports).
            return;
        }
        let Some(extensions) = &mut self.extensions else {
            return;
        };
        if extensions.tlp.resent_end() == Some(range.end) {
            // The duplicate of a probe shows no reordering.
            return;
        }
        extensions.rack.on_duplicate(scope.una, scope.nxt);
        self.remedy_on_spurious(scope, range.end);
        let Some(extensions) = &mut self.extensions else {
            return;
        };
        // A segment above SND.UNA has a record of its retransmission.
        let was_resent = range.end <= scope.una || self.board.was_resent(range.start);
        let spurious = was_resent
            && extensions
                .undo
                .on_duplicate(range.start, range.end, scope.smss);
        if spurious && self.board.lost() == 0 {
            self.take_back(scope);
        }
    }

    /// TLP_process_ack (RFC 8985 §7.4.2).
    pub(super) fn on_probe_ack(&mut self, scope: &mut Scope<'_>, summary: &AckSummary) {
        let Some(extensions) = &mut self.extensions else {
            return;
        };
        if self.probing != Probing::UnderWay {
            return;
        }
        let repaired = extensions.tlp.on_ack(&Answer {
            ack: scope.una,
            duplicate_end: summary.dsack.as_ref().map(|range| range.end),
            bare_duplicate: summary.acked == 0 && summary.is_bare,
        });
        self.probing = extensions.tlp.probing();
        if repaired && self.state.phase == Phase::Open {
            let flight = self.flight_size(scope).max(summary.acked);
            self.reduce(scope, Signal::Loss, flight, WindowChange::ProbeRepaired);
        }
    }

    /// Forward RTO recovery (RFC 5682). Returns whether the timeout was spurious.
    pub(super) fn on_frto_ack(&mut self, scope: &mut Scope<'_>, summary: &AckSummary) -> bool {
        let Some(extensions) = &mut self.extensions else {
            return false;
        };
        let recover = self.state.recover;
        let verdict = extensions.frto.on_ack(&AckObservation {
            progress: summary.acked > 0,
            complete: scope.una >= recover,
            original: summary
                .delivered
                .lowest_once()
                .is_some_and(|lowest| lowest < recover),
            duplicate: summary.new_sack || summary.is_duplicate,
            sack: self.reports.is_sack(),
            new_data: summary.new_data,
            at_once: scope.settings.window_rules.undo_at_once(),
        });
        if verdict != Verdict::Spurious {
            return false;
        }
        self.resume(scope, summary);
        self.take_back(scope);
        true
    }

    /// Eifel detection (RFC 3522 §3.2): new data fills a gap.
    pub(super) fn detect_by_timestamps(&mut self, scope: &mut Scope<'_>, summary: &AckSummary) {
        if !scope.settings.eifel {
            return;
        }
        let (Some(extensions), Some(echo)) = (&mut self.extensions, summary.echo) else {
            return;
        };
        if !extensions.undo.on_progress(echo) {
            return;
        }
        if self.reports.is_sack() {
            // An original that arrived late, after its retransmission.
            let behind = extensions.rack.behind(summary.prior.una);
            let segments = behind.div_ceil(u64::from(scope.smss));
            extensions.reordering.on_reordered(segments);
        }
        if self.board.has_resent() {
            let in_doubt = self.reports.is_sack() && self.state.phase == Phase::Recovery;
            extensions.undo.doubt(in_doubt);
            return;
        }
        // Segments marked lost before the path was known to reorder may be late as well.
        extensions.rack.on_spurious();
        self.board.forgive();
        let limit = self
            .rack_limit(scope)
            .filter(|_| self.detection != Detection::Age);
        let found = limit.map_or(0, |limit| self.board.detect(scope.now, &limit).lost);
        if found == 0 {
            self.resume(scope, summary);
            self.take_back(scope);
        }
    }

    /// No segment is lost: ends the recovery, and transmission continues as before.
    fn resume(&mut self, scope: &mut Scope<'_>, summary: &AckSummary) {
        if !self.reports.is_sack()
            && let Some(extensions) = &mut self.extensions
        {
            // Measured of Linux 6.12: eleven duplicates begin the next recovery after a segment that
            // was late by ten places.
            let duplicates = if self.reports.is_counted() {
                summary.prior.dup_acks
            } else {
                self.state.dup_acks
            };
            let segments = u64::from(duplicates) + 1;
            extensions.reordering.on_reordered(segments);
        }
        self.board.forgive();
        self.pending = Pending::Nothing;
        self.state.open();
        if self.reports.is_counted() {
            // Measured of Linux 6.18: a loss among the data of this recovery begins another. RFC 6582
            // §3.2 step 2 ignores its duplicates, because retransmissions may have caused them.
            self.state.recover = scope.una - 1;
        }
        self.note_counted(scope);
        self.board.give_back();
        scope.window.validate_recovered();
    }

    /// Whether the retransmission of segments marked lost has to wait for the next acknowledgment.
    pub(super) fn is_in_doubt(&self) -> bool {
        let extensions = self.extensions.as_ref();
        extensions.is_some_and(|extensions| extensions.undo.is_in_doubt())
    }

    /// Undoes the last reduction, which was spurious (RFC 4015 §3).
    fn take_back(&mut self, scope: &mut Scope<'_>) {
        let Some(extensions) = &mut self.extensions else {
            return;
        };
        let Some(timeout) = extensions.undo.take() else {
            return;
        };
        extensions.rack.on_spurious();
        extensions.frto = Frto::Off;
        if scope.settings.undo {
            extensions.pace = None;
            let now = scope.now;
            scope.window.on_spurious(&Spurious { now, timeout });
            scope.stats.undone = scope.stats.undone.wrapping_add(1);
        }
    }
}
