//! Records of the program: `struct record` of `bpf/trace/tcp_trace.bpf.c`.

/// State of a traced sender at one time. Windows are in segments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Record {
    /// Time: `CLOCK_MONOTONIC`, in nanoseconds.
    pub time_ns: u64,
    /// Cookie of the socket (`SO_COOKIE`, socket(7)).
    pub socket: u64,
    /// Name of the congestion control, zero-terminated.
    pub control: [u8; 16],
    /// Number of the flow, as passed to [`Trace::start`](super::Trace::start).
    pub flow: u32,
    /// Type of the event.
    pub kind: Kind,
    /// Congestion state before the event.
    pub ca_state: CaState,
    /// `TCP_ESTABLISHED` is 1.
    pub state: u8,
    /// cwnd.
    pub cwnd: u32,
    /// cwnd at the previous segment.
    pub cwnd_before: u32,
    /// cwnd before the last reduction began.
    pub prior_cwnd: u32,
    /// ssthresh; 2^31 - 1 before the first reduction.
    pub ssthresh: u32,
    /// Smoothed round-trip time, in microseconds.
    pub srtt_us: u32,
    /// Round-trip time variation, in microseconds.
    pub rttvar_us: u32,
    /// Segments sent and not acknowledged cumulatively.
    pub packets_out: u32,
    /// Segments SACKed, or without SACK reported by duplicate acknowledgments.
    pub sacked_out: u32,
    /// Segments marked lost.
    pub lost_out: u32,
    /// Retransmitted and not acknowledged.
    pub retrans_out: u32,
    /// Total number of retransmitted segments.
    pub total_retrans: u32,
    /// Payload of a full segment, in bytes.
    pub mss: u32,
    /// First unacknowledged octet, as a sequence number.
    pub snd_una: u32,
    /// Next octet to be sent, as a sequence number.
    pub snd_nxt: u32,
}

/// Type of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A segment was received, and is about to be processed.
    Segment {
        /// Acknowledgment number.
        ack: u32,
    },
    /// The congestion state is about to change.
    State {
        /// The next state.
        next: CaState,
    },
    /// A segment was retransmitted.
    Again {
        /// Its first octet, as a sequence number.
        first: u32,
        /// One past its last octet.
        end: u32,
    },
}

/// The congestion state of a connection (`enum tcp_ca_state`, `linux/tcp.h`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum CaState {
    /// No losses or reordering.
    Open,
    /// Data was reported out of order.
    Disorder,
    /// The window is being reduced because of a mark or of the host's own queue.
    Cwr,
    /// Fast recovery.
    Recovery,
    /// After an expiry of the retransmission timer.
    Loss,
}

impl CaState {
    const fn of(number: u8) -> Option<Self> {
        Some(match number {
            0 => Self::Open,
            1 => Self::Disorder,
            2 => Self::Cwr,
            3 => Self::Recovery,
            4 => Self::Loss,
            _ => return None,
        })
    }
}

impl Record {
    /// Size of a record in octets.
    pub(super) const SIZE: usize = 104;

    /// Parses a record; `None` if it is invalid.
    pub(super) fn of(octets: &[u8]) -> Option<Self> {
        let octets: &[u8; Self::SIZE] = octets.try_into().ok()?;
        let u32_at = |at: usize| {
            u32::from_ne_bytes([octets[at], octets[at + 1], octets[at + 2], octets[at + 3]])
        };
        let u64_at = |at: usize| octets[at..].first_chunk().copied().map(u64::from_ne_bytes);
        let (first, end) = (u32_at(96), u32_at(100));
        Some(Self {
            time_ns: u64_at(0)?,
            socket: u64_at(8)?,
            control: *octets[16..].first_chunk()?,
            flow: u32_at(32),
            kind: match octets[36] {
                0 => Kind::Segment { ack: first },
                1 => Kind::State {
                    next: CaState::of(octets[38])?,
                },
                2 => Kind::Again { first, end },
                _ => return None,
            },
            ca_state: CaState::of(octets[37])?,
            state: octets[39],
            cwnd: u32_at(40),
            cwnd_before: u32_at(44),
            prior_cwnd: u32_at(48),
            ssthresh: u32_at(52),
            srtt_us: u32_at(56) >> 3,
            rttvar_us: u32_at(60) >> 2,
            packets_out: u32_at(64),
            sacked_out: u32_at(68),
            lost_out: u32_at(72),
            retrans_out: u32_at(76),
            total_retrans: u32_at(80),
            mss: u32_at(84),
            snd_una: u32_at(88),
            snd_nxt: u32_at(92),
        })
    }

    /// Segments in flight as computed in a recovery: sent, minus SACKed and lost, plus
    /// retransmitted.
    #[must_use]
    pub const fn in_flight(&self) -> u32 {
        let gone = self.sacked_out.saturating_add(self.lost_out);
        self.packets_out
            .saturating_sub(gone)
            .saturating_add(self.retrans_out)
    }

    /// ssthresh, after the first reduction.
    #[must_use]
    pub const fn ssthresh(&self) -> Option<u32> {
        if self.ssthresh < 1 << 30 {
            Some(self.ssthresh)
        } else {
            None
        }
    }

    /// Name of the congestion control.
    #[must_use]
    pub fn control(&self) -> String {
        let end = self.control.iter().position(|octet| *octet == 0);
        String::from_utf8_lossy(&self.control[..end.unwrap_or(self.control.len())]).into_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn octets(kind: u8, states: [u8; 2]) -> Vec<u8> {
        let mut octets: Vec<u8> = (0..26).flat_map(|word| [word; 4]).collect();
        octets[16..32].copy_from_slice(b"cubic\0\0\0\0\0\0\0\0\0\0\0");
        octets[36..40].copy_from_slice(&[kind, states[0], states[1], 1]);
        octets
    }

    fn word(at: u8) -> u32 {
        u32::from_ne_bytes([at / 4; 4])
    }

    /// Detects a parser that is off by one field.
    #[test]
    fn fields_are_at_the_offsets_of_the_program() {
        let record = Record::of(&octets(2, [3, 3])).expect("a record");
        assert_eq!(record.flow, word(32));
        assert_eq!((record.cwnd, record.cwnd_before), (word(40), word(44)));
        assert_eq!((record.ssthresh, record.srtt_us), (word(52), word(56) >> 3));
        assert_eq!((record.snd_una, record.snd_nxt), (word(88), word(92)));
        let kind = Kind::Again {
            first: word(96),
            end: word(100),
        };
        assert_eq!((record.kind, record.ca_state), (kind, CaState::Recovery));
        assert_eq!(record.control(), "cubic");
        let next = CaState::Loss;
        let changed = Record::of(&octets(1, [0, 4])).expect("a record");
        assert_eq!(
            (changed.kind, changed.ca_state),
            (Kind::State { next }, CaState::Open)
        );
    }

    #[test]
    fn an_invalid_record_is_none() {
        assert_eq!(Record::of(&octets(3, [0, 0])), None);
        assert_eq!(Record::of(&octets(1, [0, 5])), None);
        assert_eq!(Record::of(&octets(0, [0, 0])[1..]), None);
    }
}
