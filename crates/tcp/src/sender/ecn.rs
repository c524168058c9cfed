//! Marks that the peer reports (RFC 3168 §6.1.2, RFC 8257 §3.3, RFC 9768 §3.2).

use anabranch_core::body::Body;

use super::Sender;
use crate::{
    ecn::{
        FIRST_COUNT, Feedback, MOST_WITHOUT_PROGRESS, field, newly_marked,
        option::{OptionReader, Told},
    },
    segment::{Flags, Segment},
    seq::Seq,
};

/// What the sender knows of marks.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SenderEcn {
    pub(crate) feedback: Feedback,
    /// CWR to set on the next new data (RFC 3168 §6.1.2).
    pub(crate) send_cwr: bool,
    /// s.cep: marked packets that the peer reported.
    told: u32,
    /// Octets that the last acknowledgment reported as marked.
    marked: u64,
    /// Octets, where the AccECN option is in use.
    pub(crate) option: Option<OptionReader>,
}

impl Default for SenderEcn {
    fn default() -> Self {
        Self {
            feedback: Feedback::None,
            send_cwr: false,
            told: FIRST_COUNT,
            marked: 0,
            option: None,
        }
    }
}

impl<B: Body> Sender<B> {
    /// The third segment of the handshake came (RFC 9768 §3.2.2.1, table 4).
    pub(crate) fn on_handshake_ace(&mut self, segment: &Segment<B>) {
        let Some(extras) = &mut self.cold.extras else {
            return;
        };
        let state = &mut extras.ecn;
        if state.feedback != Feedback::Counter {
            return;
        }
        if let Some(option) = &mut state.option {
            option.on_first(segment.options.accecn());
        }
        if !segment.body.is_empty() || !segment.options.sack_blocks().is_empty() {
            // Only a pure acknowledgment tells the field of the SYN/ACK; this one counts.
            self.read_ace(segment, self.peer.una());
            return;
        }
        match field(segment.flags) {
            // Something on the path clears the field, so nothing may be marked, and no mark is
            // believed. The peer's marks are reported to it all the same.
            0b000 => self.agreed.ecn = false,
            0b110 => state.told = FIRST_COUNT + 1,
            _ => {}
        }
    }

    /// CWR, if this new data is the first after a reduction (RFC 3168 §6.1.2).
    #[inline(never)]
    pub(super) fn take_cwr(&mut self) -> Flags {
        let state = &mut self.cold.extras().ecn;
        let due = std::mem::take(&mut state.send_cwr);
        if due && state.feedback != Feedback::Counter {
            Flags::CWR
        } else {
            Flags::NONE
        }
    }

    /// A segment arrives whose acknowledgment is `ack`: reads what it tells of marks. To be called
    /// before the acknowledgment is taken.
    pub(crate) fn read_ace(&mut self, segment: &Segment<B>, ack: Seq) {
        let feedback = self.cold.extras().ecn.feedback;
        if feedback != Feedback::Counter || !self.agreed.ecn || ack < self.peer.una() || ack > self.nxt {
            return;
        }
        // What SACK reported before came with a field of its own.
        let fresh = ack.since(self.peer.una()).saturating_sub(self.board.sacked());
        let (acked, smss) = (ack.since(self.peer.una()), u64::from(self.smss));
        let state = &mut self.cold.extras().ecn;
        let told = match &mut state.option {
            Some(option) => option.read(segment.options.accecn(), acked),
            None => Told::ByPackets { blind: true },
        };
        let packets = match told {
            Told::Superseded => return,
            Told::ByPackets { blind: true } => fresh.div_ceil(smss),
            Told::Exactly(_) | Told::ByPackets { blind: false } => 0,
        };
        let marked = newly_marked(field(segment.flags), state.told, packets);
        if acked == 0 && marked > MOST_WITHOUT_PROGRESS && matches!(told, Told::ByPackets { .. }) {
            // An older acknowledgment that comes late: its field lies behind.
            return;
        }
        state.told = state.told.wrapping_add(u32::try_from(marked).unwrap_or(0));
        state.marked += match told {
            Told::Exactly(octets) => octets,
            _ => marked * smss,
        };
        if let (Told::ByPackets { .. }, Some(option)) = (told, &mut state.option) {
            option.guess(marked * smss);
        }
    }

    /// Whether the segment tells of marks.
    #[inline]
    pub(super) fn tells_of_marks(&self, segment: &Segment<B>) -> bool {
        self.agreed.ecn
            && match &self.cold.extras {
                Some(extras) if extras.ecn.feedback == Feedback::Counter => extras.ecn.marked > 0,
                _ => segment.flags.any(Flags::ECE),
            }
    }

    /// Octets that it tells of, of `acked` that it acknowledges.
    pub(super) fn take_marked(&mut self, acked: u64) -> u64 {
        let state = &mut self.cold.extras().ecn;
        match state.feedback {
            Feedback::Counter => std::mem::take(&mut state.marked),
            _ => acked,
        }
    }

    /// Whether the peer reports marks packet by packet (RFC 8257, RFC 9768), not until the sender reacts.
    pub(super) fn marks_are_exact(&self) -> bool {
        self.cold.extras.as_ref().is_some_and(|extras| {
            matches!(extras.ecn.feedback, Feedback::Exact | Feedback::Counter)
        })
    }
}
