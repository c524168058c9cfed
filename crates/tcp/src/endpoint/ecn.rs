//! Explicit congestion notification: agreeing on it, echoing marks, reading the echo.
//!
//! Three kinds of feedback. RFC 3168 §6.1: one bit that stays until the sender says that it has
//! reacted. RFC 8257 §3.2: the same bit, but telling of exactly the segments that each
//! acknowledgment covers. RFC 9768: the ACE field, three bits of a counter of marked packets.
//!
//! Beside that its option, with octets instead of packets ([`option`]).
//!
//! With DCTCP every packet of a connection is ECN-capable: SYN, SYN-ACK, RST, FIN, pure acknowledgments, window probes
//! and retransmissions (RFC 8257 §3.5). A switch that marks above a threshold drops what is not ECN-capable first,
//! and no connection would open. Otherwise only new data is (RFC 3168 §6.1.1, §6.1.4, §6.1.5, §6.1.6).
//!
//! # Not implemented
//! - RFC 9768: a pure acknowledgment ahead of a client that has data at once (§3.2.2.1); different
//!   answers to different SYNs of one handshake (§3.1.5); tests for mangling of the IP field
//!   (§3.2.2.3) and for a zeroed ACE field after the handshake (§3.2.2.4); ECN-capable control
//!   packets and retransmissions without DCTCP.

mod option;

use anabranch_core::{body::Body, packet::Ecn};

use self::option::{OptionState, Told};
use super::Endpoint;
use crate::{
    AccEcn,
    segment::{Flags, Segment},
    seq::Seq,
    settings::EcnMode,
};

/// How marks are told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Feedback {
    /// Not at all.
    #[default]
    None,
    /// RFC 3168
    Classic,
    /// RFC 8257 §3.2
    Exact,
    /// RFC 9768
    Counter,
}

/// What ECN remembers.
#[derive(Debug, Clone, Copy)]
#[expect(clippy::struct_excessive_bools, reason = "facts of their own")]
pub(super) struct EcnState {
    pub feedback: Feedback,
    /// ECE is to be set.
    echo_ce: bool,
    /// CWR to set on the next new data (RFC 3168 §6.1.2).
    pub send_cwr: bool,
    /// The field of the peer's SYN.
    syn: Ecn,
    /// The peer's SYN did not agree to ECN.
    refused: bool,
    /// The next segment tells the field of the peer's SYN/ACK (RFC 9768 §3.2.2.1).
    answer_syn_ack: bool,
    /// r.cep: marked packets received.
    received: u32,
    /// s.cep: marked packets that the peer told of.
    told: u32,
    /// Octets that the last acknowledgment told to be marked.
    marked: u64,
    /// The last packet was marked.
    last_ce: bool,
    /// Marks since the last acknowledgment left.
    untold: u32,
    /// An acknowledgment of what came before the echo changed: its number, and the echo then.
    pub early: Option<(Seq, bool)>,
    /// Octets, where the AccECN option is in use.
    option: Option<OptionState>,
}

/// r.cep and s.cep begin here, so that a zeroed field is seen (RFC 9768 §3.2.1).
const FIRST_COUNT: u32 = 5;

/// Increment-triggered acknowledgments: after so many marks at least (RFC 9768 §3.2.2.5.1).
const MARKS_PER_ACK: u32 = 2;

/// What an acknowledgment without progress can tell of more than the one before: half of the field's
/// range. Whatever seems more is an older one, as with the option's counts.
const MOST_WITHOUT_PROGRESS: u64 = 4;

const ALL: Flags = Flags(Flags::AE.0 | Flags::CWR.0 | Flags::ECE.0);
const SETUP: Flags = Flags(Flags::CWR.0 | Flags::ECE.0);

impl Default for EcnState {
    fn default() -> Self {
        Self {
            feedback: Feedback::None,
            echo_ce: false,
            send_cwr: false,
            syn: Ecn::NotEct,
            refused: false,
            answer_syn_ack: false,
            received: FIRST_COUNT,
            told: FIRST_COUNT,
            marked: 0,
            last_ce: false,
            untold: 0,
            early: None,
            option: None,
        }
    }
}

/// The three flags as a number: AE, CWR, ECE.
const fn field(flags: Flags) -> u8 {
    (flags.any(Flags::AE) as u8) << 2
        | (flags.any(Flags::CWR) as u8) << 1
        | flags.any(Flags::ECE) as u8
}

const fn flags(field: u8) -> Flags {
    let mut flags = 0;
    if field & 4 != 0 {
        flags |= Flags::AE.0;
    }
    if field & 2 != 0 {
        flags |= Flags::CWR.0;
    }
    if field & 1 != 0 {
        flags |= Flags::ECE.0;
    }
    Flags(flags)
}

/// How a SYN/ACK and the segment after it tell an ECN field (RFC 9768 tables 2 and 3).
const fn handshake_encoding(ecn: Ecn) -> u8 {
    match ecn {
        Ecn::NotEct => 0b010,
        Ecn::Ect1 => 0b011,
        Ecn::Ect0 => 0b100,
        Ecn::Ce => 0b110,
    }
}

/// What the flags of a SYN ask for.
const fn syn_flags(mode: EcnMode) -> Flags {
    match mode {
        EcnMode::Off => Flags::NONE,
        EcnMode::Rfc3168 | EcnMode::Dctcp => SETUP,
        EcnMode::Accecn | EcnMode::AccecnWithoutOption => ALL,
    }
}

/// What a listening end makes of a SYN (RFC 9768 §3.1.2, §3.1.3; RFC 3168 §6.1.1).
fn on_syn(mode: EcnMode, syn: Flags) -> Feedback {
    match (mode, field(syn)) {
        (EcnMode::Off, _) | (_, 0b000) => Feedback::None,
        (EcnMode::Accecn | EcnMode::AccecnWithoutOption, 0b011) => Feedback::Classic,
        // Also flags that nothing is known to ask with: for whatever comes later.
        (EcnMode::Accecn | EcnMode::AccecnWithoutOption, _) => Feedback::Counter,
        (mode, _) if syn.has(SETUP) => classic(mode),
        _ => Feedback::None,
    }
}

/// What the end that opened makes of the SYN/ACK (RFC 9768 table 2, §3.1.3).
const fn on_syn_ack(mode: EcnMode, syn_ack: Flags) -> Feedback {
    match (mode, field(syn_ack)) {
        // 101 is reserved for what comes later (RFC 9768 §3.1.3).
        (EcnMode::Accecn | EcnMode::AccecnWithoutOption, 0b010..=0b110) => Feedback::Counter,
        (EcnMode::Accecn | EcnMode::AccecnWithoutOption, 0b001) => Feedback::Classic,
        // RFC 3168 §6.1.1; AE was the nonce's bit.
        (EcnMode::Rfc3168 | EcnMode::Dctcp, 0b001 | 0b101) => classic(mode),
        _ => Feedback::None,
    }
}

const fn classic(mode: EcnMode) -> Feedback {
    match mode {
        EcnMode::Dctcp => Feedback::Exact,
        _ => Feedback::Classic,
    }
}

/// Packets newly told of as marked, from the field now and the count before: the safest of those
/// that fit, where so many packets are acknowledged that the field may have wrapped (RFC 9768
/// appendix A.2.1).
fn newly_marked(ace: u8, told: u32, acked_packets: u64) -> u64 {
    let delta = u64::from((u32::from(ace) + 8 - told % 8) % 8);
    if acked_packets <= 7 {
        delta
    } else {
        acked_packets - (acked_packets - delta) % 8
    }
}

impl EcnState {
    /// The last option did not leave.
    pub(super) fn repeat_option(&mut self) {
        if let Some(option) = &mut self.option {
            option.repeat();
        }
    }
}

impl<B: Body> Endpoint<B> {
    /// The flags of our SYN, or of its answer. After a SYN without answer ECN is left out, in case something on the path drops
    /// it for that (RFC 3168 §6.1.1.1; Linux: `tcp_ecn_fallback`); a SYN that asks for AccECN is retransmitted once before
    /// (RFC 9768 §3.1.4.1).
    pub(super) fn ecn_syn_flags(&self, answers: bool) -> Flags {
        if !answers {
            let attempts = match self.settings.ecn {
                EcnMode::Accecn | EcnMode::AccecnWithoutOption => 2,
                EcnMode::Off | EcnMode::Rfc3168 | EcnMode::Dctcp => 1,
            };
            return if self.expiries < attempts {
                syn_flags(self.settings.ecn)
            } else {
                Flags::NONE
            };
        }
        match self.cold.extras.as_ref().map(|extras| &extras.ecn) {
            // RFC 9768 §3.2.3.2.2: an answer that was lost twice is sent without.
            Some(ecn) if ecn.feedback == Feedback::Counter && self.expiries >= 2 => Flags::NONE,
            Some(ecn) if ecn.feedback == Feedback::Counter => flags(handshake_encoding(ecn.syn)),
            Some(ecn) if ecn.feedback != Feedback::None => Flags::ECE,
            _ => Flags::NONE,
        }
    }

    /// The peer's SYN or SYN/ACK came, in a packet with this field.
    pub(super) fn agree_on_ecn(&mut self, segment: &Segment<B>, ecn: Ecn) {
        if self.settings.ecn == EcnMode::Off {
            return;
        }
        let with_option = self.settings.ecn == EcnMode::Accecn;
        let state = &mut self.cold.extras().ecn;
        if segment.flags.any(Flags::ACK) {
            state.feedback = on_syn_ack(self.settings.ecn, segment.flags);
            state.answer_syn_ack = state.feedback == Feedback::Counter;
            // RFC 9768 §3.2.2.2: a marked SYN/ACK counts, a marked SYN does not.
            state.received = FIRST_COUNT + u32::from(ecn == Ecn::Ce);
        } else {
            state.feedback = on_syn(self.settings.ecn, segment.flags);
            state.received = FIRST_COUNT;
        }
        state.syn = ecn;
        state.refused = state.feedback == Feedback::None;
        state.option = (with_option && state.feedback == Feedback::Counter).then(|| {
            let mut option = OptionState::default();
            option.on_first(segment.options.accecn());
            option
        });
        self.agreed.ecn = state.feedback != Feedback::None;
        self.agreed.exact_ecn = matches!(state.feedback, Feedback::Exact | Feedback::Counter);
    }

    /// The ECN field of a SYN, a SYN-ACK or a RST: with DCTCP they are ECN-capable (RFC 8257 §3.5), unless the peer
    /// has not agreed to ECN. A SYN keeps its field also where a retransmission no longer asks for ECN.
    pub(super) fn control_ecn(&self) -> Ecn {
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
        let exact = self.agreed.exact_ecn
            && self
                .cold
                .extras
                .as_ref()
                .is_some_and(|extras| extras.ecn.feedback == Feedback::Exact);
        if exact { Ecn::Ect0 } else { Ecn::NotEct }
    }

    /// The third segment of the handshake came (RFC 9768 §3.2.2.1, table 4).
    pub(super) fn on_handshake_ace(&mut self, segment: &Segment<B>) {
        if !self.agreed.exact_ecn {
            return;
        }
        let state = &mut self.cold.extras().ecn;
        if state.feedback != Feedback::Counter {
            return;
        }
        if let Some(option) = &mut state.option {
            option.on_first(segment.options.accecn());
        }
        if !segment.body.is_empty() || !segment.options.sack_blocks().is_empty() {
            // Only a pure acknowledgment tells the field of the SYN/ACK; this one counts.
            self.read_ace(segment, self.snd.una);
            return;
        }
        match field(segment.flags) {
            // Something on the path clears the field, so nothing may be marked, and no mark is
            // believed. The peer is told of its marks all the same.
            0b000 => self.agreed.ecn = false,
            0b110 => state.told = FIRST_COUNT + 1,
            _ => {}
        }
    }

    /// The flags that every segment carries, and whether every packet is ECN-capable; whether this is a pure
    /// acknowledgment matters to the first.
    #[inline(never)]
    pub(super) fn ecn_echo(&mut self, pure: bool) -> (Flags, bool) {
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
        (flags, state.feedback == Feedback::Exact)
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
    pub(super) fn read_ace(&mut self, segment: &Segment<B>, ack: Seq) {
        let feedback = self.cold.extras().ecn.feedback;
        if feedback != Feedback::Counter
            || !self.agreed.ecn
            || ack < self.snd.una
            || ack > self.snd.nxt
        {
            return;
        }
        // What SACK reported before came with a field of its own.
        let fresh = ack
            .since(self.snd.una)
            .saturating_sub(self.snd.board.sacked());
        let (acked, smss) = (ack.since(self.snd.una), u64::from(self.smss));
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

    /// The AccECN option of the next segment, if one is due and may take so many octets.
    #[inline(never)]
    pub(super) fn take_accecn(&mut self, room: u32) -> Option<AccEcn> {
        self.cold.extras().ecn.option.as_mut()?.take(room)
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

    /// An acceptable segment arrives: what it means for the echo. To be called before its payload
    /// is taken.
    pub(super) fn on_ecn(&mut self, flags: Flags, ecn: Ecn, octets: u32) {
        if !self.agreed.ecn && !self.agreed.exact_ecn {
            return;
        }
        let state = &mut self.cold.extras().ecn;
        let (ce, has_data) = (ecn == Ecn::Ce, octets > 0);
        match state.feedback {
            Feedback::None => {}
            Feedback::Classic => {
                // RFC 3168 §6.1.3: until the sender says that it has reacted.
                if flags.any(Flags::CWR) {
                    state.echo_ce = false;
                    if has_data {
                        self.rcv.ack.sender_reacted();
                    }
                }
                if ce && has_data {
                    let first = !std::mem::replace(&mut state.echo_ce, true);
                    self.rcv.ack.marked(first);
                }
            }
            Feedback::Exact => {
                if has_data && ce != state.echo_ce {
                    // RFC 8257 §3.2: what waits is acknowledged as it was.
                    if self.rcv.ack.is_waiting() {
                        state.early = Some((self.rcv.nxt, state.echo_ce));
                        self.rcv.ack.sent();
                        self.wanted.urgent = true;
                    }
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
                    self.rcv.ack.at_once();
                }
                state.last_ce = ce;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rfc_9768_table_2_what_each_answer_to_an_accecn_syn_means() {
        use Feedback::{Classic, Counter, None};
        for (answer, expected) in [
            (0b000, None),
            (0b001, Classic),
            (0b010, Counter),
            (0b011, Counter),
            (0b100, Counter),
            (0b101, Counter),
            (0b110, Counter),
            (0b111, None),
        ] {
            assert_eq!(
                on_syn_ack(EcnMode::Accecn, flags(answer)),
                expected,
                "{answer:03b}"
            );
        }
        assert_eq!(field(syn_flags(EcnMode::Accecn)), 0b111);
    }

    #[test]
    fn an_accecn_server_takes_old_and_unknown_clients() {
        for (syn, expected) in [
            (0b000, Feedback::None),
            (0b011, Feedback::Classic),
            (0b111, Feedback::Counter),
            (0b101, Feedback::Counter),
        ] {
            assert_eq!(on_syn(EcnMode::Accecn, flags(syn)), expected, "{syn:03b}");
        }
        // One that knows RFC 3168 alone takes the new client for an old one.
        assert_eq!(on_syn(EcnMode::Rfc3168, ALL), Feedback::Classic);
        assert_eq!(on_syn(EcnMode::Dctcp, SETUP), Feedback::Exact);
        assert_eq!(on_syn(EcnMode::Off, ALL), Feedback::None);
    }

    #[test]
    fn the_answer_tells_the_field_of_the_syn() {
        let encodings = [Ecn::NotEct, Ecn::Ect1, Ecn::Ect0, Ecn::Ce].map(handshake_encoding);
        assert_eq!(encodings, [0b010, 0b011, 0b100, 0b110]);
    }

    #[test]
    fn rfc_9768_a_2_1_the_safest_of_the_counts_that_fit() {
        // Few packets: the difference of the fields, over the wrap too.
        assert_eq!(newly_marked(7, 5, 2), 2);
        assert_eq!(newly_marked(1, 6, 4), 3);
        assert_eq!(newly_marked(5, 5, 2), 0);
        // Acknowledgments were lost: up to all of the packets may be marked.
        assert_eq!(newly_marked(6, 5, 9), 9);
        assert_eq!(newly_marked(5, 5, 9), 8);
        assert_eq!(newly_marked(0, 5, 20), 19);
    }
}
