//! Congestion marks that the peer reports (RFC 3168 §6.1.2, RFC 8257 §3.3, RFC 9768 §3.2).

use anabranch_core::body::Body;

use super::{
    FIRST_COUNT, Feedback, MOST_WITHOUT_PROGRESS, field, newly_marked,
    option::{OptionReader, OptionReport},
};
use anabranch_wire::segment::{Flags, Segment};

/// ECN as the sender uses it.
#[derive(Debug, Default)]
pub(crate) struct EcnSender {
    /// New data is ECN-capable, and marks are believed.
    capable: bool,
    /// None before the handshake has agreed on ECN.
    reports: Option<Box<Reports>>,
}

/// Reports of marks.
#[derive(Debug)]
struct Reports {
    feedback: Feedback,
    /// CWR to set on the next new data (RFC 3168 §6.1.2).
    send_cwr: bool,
    /// s.cep: marked packets that the peer reported.
    packets: u32,
    /// Octets that the last acknowledgment reported as marked.
    marked: u64,
    /// Octets, if the AccECN option is in use.
    option: Option<OptionReader>,
}

impl EcnSender {
    /// Sets the `feedback` that the handshake agreed on, with the peer's first option if options
    /// are in use.
    pub(crate) fn agree(&mut self, feedback: Feedback, option: Option<OptionReader>) {
        self.capable = feedback != Feedback::None;
        self.reports = Some(Box::new(Reports {
            feedback,
            send_cwr: false,
            packets: FIRST_COUNT,
            marked: 0,
            option,
        }));
    }

    fn feedback(&self) -> Feedback {
        self.reports
            .as_ref()
            .map_or(Feedback::None, |reports| reports.feedback)
    }

    /// Whether new data is ECN-capable.
    #[inline]
    pub(crate) const fn is_capable(&self) -> bool {
        self.capable
    }

    /// Processes the third segment of the handshake (RFC 9768 §3.2.2.1, table 4). Returns whether
    /// its ACE field counts packets, as in later segments.
    pub(crate) fn on_handshake<B: Body>(&mut self, segment: &Segment<B>) -> bool {
        let Some(reports) = &mut self.reports else {
            return false;
        };
        if reports.feedback != Feedback::Counter {
            return false;
        }
        if let Some(option) = &mut reports.option {
            option.on_first(segment.options.accecn());
        }
        if !segment.body.is_empty() || !segment.options.sack_blocks().is_empty() {
            // Only a pure acknowledgment repeats the field of the SYN/ACK.
            return true;
        }
        match field(segment.flags) {
            // A host on the path clears the field, so nothing may be marked, and no mark is
            // believed. The peer's marks are reported to it all the same.
            0b000 => self.capable = false,
            0b110 => reports.packets = FIRST_COUNT + 1,
            _ => {}
        }
        false
    }

    /// The window is reduced: the next new data carries CWR.
    pub(crate) fn on_reduction(&mut self) {
        if let Some(reports) = &mut self.reports {
            reports.send_cwr = true;
        }
    }

    /// CWR, if the next new data is the first after a reduction (RFC 3168 §6.1.2).
    #[inline(never)]
    pub(crate) fn take_cwr(&mut self) -> Flags {
        let Some(reports) = &mut self.reports else {
            return Flags::NONE;
        };
        let due = std::mem::take(&mut reports.send_cwr);
        if due && reports.feedback != Feedback::Counter {
            Flags::CWR
        } else {
            Flags::NONE
        }
    }

    /// Reads the marks that an acknowledgment of `acked` octets reports by ACE field and option.
    /// Earlier ACKs, each with an ACE field, have already SACKed `sacked` of these octets. Must be
    /// called before the segment is processed otherwise.
    pub(crate) fn read_ace<B: Body>(
        &mut self,
        segment: &Segment<B>,
        acked: u64,
        sacked: u64,
        smss: u64,
    ) {
        let Some(reports) = self.reports.as_mut().filter(|_| self.capable) else {
            return;
        };
        if reports.feedback != Feedback::Counter {
            return;
        }
        let report = match &mut reports.option {
            Some(option) => option.read(segment.options.accecn(), acked),
            None => OptionReport::ByPackets { blind: true },
        };
        let packets = match report {
            OptionReport::Superseded => return,
            OptionReport::ByPackets { blind: true } => acked.saturating_sub(sacked).div_ceil(smss),
            OptionReport::Exactly(_) | OptionReport::ByPackets { blind: false } => 0,
        };
        let marked = newly_marked(field(segment.flags), reports.packets, packets);
        if acked == 0
            && marked > MOST_WITHOUT_PROGRESS
            && matches!(report, OptionReport::ByPackets { .. })
        {
            // An older acknowledgment that arrives late: its field is out of date.
            return;
        }
        let more = u32::try_from(marked).unwrap_or(0);
        reports.packets = reports.packets.wrapping_add(more);
        reports.marked += match report {
            OptionReport::Exactly(octets) => octets,
            _ => marked * smss,
        };
        if let (OptionReport::ByPackets { .. }, Some(option)) = (report, &mut reports.option) {
            option.guess(marked * smss);
        }
    }

    /// Whether the segment reports marks.
    #[inline]
    pub(crate) fn has_marks<B: Body>(&self, segment: &Segment<B>) -> bool {
        self.capable
            && match &self.reports {
                Some(reports) if reports.feedback == Feedback::Counter => reports.marked > 0,
                _ => segment.flags.any(Flags::ECE),
            }
    }

    /// Octets reported as marked, of `acked` octets that the segment acknowledges.
    pub(crate) fn take_marked(&mut self, acked: u64) -> u64 {
        match &mut self.reports {
            Some(reports) if reports.feedback == Feedback::Counter => {
                std::mem::take(&mut reports.marked)
            }
            _ => acked,
        }
    }

    /// Whether the peer reports marks packet by packet (RFC 8257, RFC 9768), not until the sender
    /// reacts.
    pub(crate) fn is_exact(&self) -> bool {
        matches!(self.feedback(), Feedback::Exact | Feedback::Counter)
    }
}
