//! ECN marks received, and their reports to the peer (RFC 3168 §6.1.3, RFC 8257 §3.2, RFC 9768
//! §3.2).

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

/// ECN state of the receiver.
#[derive(Debug, Clone, Copy)]
#[expect(clippy::struct_excessive_bools, reason = "facts of their own")]
pub(crate) struct ReceiverEcn {
    pub(crate) feedback: Feedback,
    /// The next segments carry ECE.
    echo_ce: bool,
    /// The ECN field of the peer's SYN.
    pub(crate) syn: Ecn,
    /// The peer's SYN did not agree to ECN.
    pub(crate) refused: bool,
    /// The next segment reports the field of the peer's SYN/ACK (RFC 9768 §3.2.2.1).
    pub(crate) answer_syn_ack: bool,
    /// r.cep: marked packets received.
    pub(crate) received: u32,
    /// The last packet was marked.
    last_ce: bool,
    /// Marks since the last acknowledgment was sent.
    untold: u32,
    /// An acknowledgment due for the data before the echo changed: its number, and the echo at that
    /// time.
    pub(crate) early: Option<(Seq, bool)>,
    /// Counters of octets, if the AccECN option is in use.
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
    /// ECN flags of our SYN or SYN/ACK. After an unanswered SYN ECN is left out, in case a
    /// middlebox drops the SYN because of it (RFC 3168 §6.1.1.1; Linux: `tcp_ecn_fallback`). A SYN
    /// that requests AccECN is retransmitted once before that (RFC 9768 §3.1.4.1).
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
            // RFC 9768 §3.2.3.2.2: a SYN/ACK lost twice is sent without AccECN.
            Some(ecn) if ecn.feedback == Feedback::Counter && expiries >= 2 => Flags::NONE,
            Some(ecn) if ecn.feedback == Feedback::Counter => flags(handshake_encoding(ecn.syn)),
            Some(ecn) if ecn.feedback != Feedback::None => Flags::ECE,
            _ => Flags::NONE,
        }
    }

    /// The ECN field of a SYN, a SYN-ACK or a RST. With DCTCP they are ECN-capable (RFC 8257 §3.5),
    /// unless the peer has not agreed to ECN. A SYN keeps its field even if a retransmission no
    /// longer requests ECN.
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

    /// The ECN field of every packet after the handshake, if it is the same for all.
    fn field_of_all(&self, feedback: Feedback) -> Option<Ecn> {
        match feedback {
            // RFC 8257 §3.5
            Feedback::Exact => Some(Ecn::Ect0),
            // RFC 9331 §4.1
            Feedback::Counter if self.settings.ecn == EcnMode::L4s => Some(Ecn::Ect1),
            Feedback::None | Feedback::Classic | Feedback::Counter => None,
        }
    }

    /// Returns the flags of the next segment, and its ECN field if that is the same for every
    /// packet. `pure` matters to the flags only: it is set for a pure acknowledgment.
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

    /// Returns the AccECN option of the next segment, of at most `room` octets, if one is due.
    #[inline(never)]
    pub(crate) fn take_accecn(&mut self, room: u32) -> Option<AccEcn> {
        self.cold.extras().ecn.option.as_mut()?.take(room)
    }

    /// Updates the echo for an acceptable segment. Must be called before its payload is taken.
    /// Returns whether an acknowledgment must be sent before anything else.
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
                // RFC 3168 §6.1.3: echoed until the sender reports its reaction.
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
                    // RFC 8257 §3.2: segments before the change are acknowledged with the old echo,
                    // and this one at once.
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
                // Counted only here, because a refused segment must not count.
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

    /// The last option was not sent.
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
