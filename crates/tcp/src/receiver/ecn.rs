//! Marks that have come, and what is reported of them (RFC 3168 §6.1.3, RFC 8257 §3.2, RFC 9768 §3.2).

use anabranch_core::{body::Body, packet::Ecn};

use super::Receiver;
use crate::{
    ecn::{
        FIRST_COUNT, Feedback, MARKS_PER_ACK, flags, handshake_encoding, option::OptionWriter,
        syn_flags,
    },
    settings::EcnMode,
};
use anabranch_wire::{AccEcn, segment::Flags, seq::Seq};

/// What the receiver knows of marks.
#[derive(Debug, Clone, Copy)]
#[expect(clippy::struct_excessive_bools, reason = "facts of their own")]
pub(crate) struct ReceiverEcn {
    pub(crate) feedback: Feedback,
    /// ECE is to be set.
    echo_ce: bool,
    /// The field of the peer's SYN.
    pub(crate) syn: Ecn,
    /// The peer's SYN did not agree to ECN.
    pub(crate) refused: bool,
    /// The next segment reports the field of the peer's SYN/ACK (RFC 9768 §3.2.2.1).
    pub(crate) answer_syn_ack: bool,
    /// r.cep: marked packets received.
    pub(crate) received: u32,
    /// The last packet was marked.
    last_ce: bool,
    /// Marks since the last acknowledgment left.
    untold: u32,
    /// An acknowledgment of what came before the echo changed: its number, and the echo then.
    pub(crate) early: Option<(Seq, bool)>,
    /// Octets, where the AccECN option is in use.
    pub(crate) option: Option<OptionWriter>,
}

impl Default for ReceiverEcn {
    fn default() -> Self {
        Self {
            feedback: Feedback::None,
            echo_ce: false,
            syn: Ecn::NotEct,
            refused: false,
            answer_syn_ack: false,
            received: FIRST_COUNT,
            last_ce: false,
            untold: 0,
            early: None,
            option: None,
        }
    }
}

impl<B: Body> Receiver<B> {
    /// The flags of our SYN, or of its answer. After a SYN without answer ECN is left out, in case something on the path drops
    /// it for that (RFC 3168 §6.1.1.1; Linux: `tcp_ecn_fallback`); a SYN that asks for AccECN is retransmitted once before
    /// (RFC 9768 §3.1.4.1).
    pub(crate) fn ecn_syn_flags(&self, answers: bool, expiries: u16) -> Flags {
        if !answers {
            let attempts = match self.settings.ecn {
                EcnMode::Accecn | EcnMode::AccecnWithoutOption | EcnMode::L4s => 2,
                EcnMode::Off | EcnMode::Rfc3168 | EcnMode::Dctcp => 1,
            };
            return if expiries < attempts {
                syn_flags(self.settings.ecn)
            } else {
                Flags::NONE
            };
        }
        match self.cold.extras.as_ref().map(|extras| &extras.ecn) {
            // RFC 9768 §3.2.3.2.2: an answer that was lost twice is sent without.
            Some(ecn) if ecn.feedback == Feedback::Counter && expiries >= 2 => Flags::NONE,
            Some(ecn) if ecn.feedback == Feedback::Counter => flags(handshake_encoding(ecn.syn)),
            Some(ecn) if ecn.feedback != Feedback::None => Flags::ECE,
            _ => Flags::NONE,
        }
    }

    /// The ECN field of a SYN, a SYN-ACK or a RST: with DCTCP they are ECN-capable (RFC 8257 §3.5), unless the peer
    /// has not agreed to ECN. A SYN keeps its field also where a retransmission no longer asks for ECN.
    pub(crate) fn control_ecn(&self) -> Ecn {
        let refused = |extras: &super::Extras| extras.ecn.refused;
        if self.settings.ecn == EcnMode::Dctcp && !self.cold.extras.as_deref().is_some_and(refused)
        {
            Ecn::Ect0
        } else {
            Ecn::NotEct
        }
    }

    /// The ECN field of a pure acknowledgment.
    #[must_use]
    pub fn acknowledgment_ecn(&self) -> Ecn {
        let extras = self.cold.extras.as_ref().filter(|_| self.agreed.exact_ecn);
        extras
            .and_then(|extras| self.field_of_all(extras.ecn.feedback))
            .unwrap_or(Ecn::NotEct)
    }

    /// The ECN field of every packet after the handshake, where that does not depend on what it is.
    fn field_of_all(&self, feedback: Feedback) -> Option<Ecn> {
        match feedback {
            // RFC 8257 §3.5
            Feedback::Exact => Some(Ecn::Ect0),
            // RFC 9331 §4.1
            Feedback::Counter if self.settings.ecn == EcnMode::L4s => Some(Ecn::Ect1),
            Feedback::None | Feedback::Classic | Feedback::Counter => None,
        }
    }

    /// The flags that every segment carries, and the ECN field if it is that of every packet; whether this is a pure
    /// acknowledgment matters to the first.
    #[inline(never)]
    pub(super) fn ecn_echo(&mut self, pure: bool) -> (Flags, Option<Ecn>) {
        let state = &mut self.cold.extras().ecn;
        state.untold = 0;
        let flags = match state.feedback {
            Feedback::Classic | Feedback::Exact if state.echo_ce => Flags::ECE,
            Feedback::None | Feedback::Classic | Feedback::Exact => Flags::NONE,
            Feedback::Counter if std::mem::take(&mut state.answer_syn_ack) && pure => {
                flags(handshake_encoding(state.syn))
            }
            Feedback::Counter => flags((state.received % 8) as u8),
        };
        let feedback = state.feedback;
        (flags, self.field_of_all(feedback))
    }

    /// The AccECN option of the next segment, if one is due and may take so many octets.
    #[inline(never)]
    pub(crate) fn take_accecn(&mut self, room: u32) -> Option<AccEcn> {
        self.cold.extras().ecn.option.as_mut()?.take(room)
    }

    /// An acceptable segment arrives: what it means for the echo. To be called before its payload
    /// is taken. Whether an acknowledgment must leave ahead of everything else.
    pub(crate) fn on_ecn(&mut self, flags: Flags, ecn: Ecn, octets: u32) -> bool {
        if !self.agreed.ecn && !self.agreed.exact_ecn {
            return false;
        }
        let mut at_once = false;
        let state = &mut self.cold.extras().ecn;
        let (ce, has_data) = (ecn == Ecn::Ce, octets > 0);
        match state.feedback {
            Feedback::None => {}
            Feedback::Classic => {
                // RFC 3168 §6.1.3: until the sender says that it has reacted.
                if flags.any(Flags::CWR) {
                    state.echo_ce = false;
                    if has_data {
                        self.ack.sender_reacted();
                    }
                }
                if ce && has_data {
                    let first = !std::mem::replace(&mut state.echo_ce, true);
                    self.ack.marked(first);
                }
            }
            Feedback::Exact => {
                if has_data && ce != state.echo_ce {
                    // RFC 8257 §3.2: what waits is acknowledged as it was, and the segment that differs at once.
                    if self.ack.is_waiting() {
                        state.early = Some((self.nxt, state.echo_ce));
                        self.ack.sent();
                        at_once = true;
                    }
                    self.ack.at_once();
                    state.echo_ce = ce;
                }
            }
            Feedback::Counter => {
                // What is refused leaves no trace, so only here.
                state.received = state.received.wrapping_add(u32::from(ce));
                if let Some(option) = &mut state.option {
                    option.on_payload(ecn, octets);
                }
                state.untold += u32::from(ce);
                // RFC 9768 §3.2.2.5.1: change-triggered and increment-triggered.
                if has_data && ((ce && !state.last_ce) || state.untold >= MARKS_PER_ACK) {
                    self.ack.at_once();
                }
                state.last_ce = ce;
            }
        }
        at_once
    }

    /// The last option did not leave.
    pub(crate) fn repeat_option(&mut self) {
        if let Some(option) = self
            .cold
            .extras
            .as_mut()
            .and_then(|extras| extras.ecn.option.as_mut())
        {
            option.repeat();
        }
    }
}
