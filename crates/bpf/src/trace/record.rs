//! What the program tells: `struct record` of `bpf/trace/tcp_trace.bpf.c`.

/// A sender of the run at one moment. Windows are in segments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Record {
    /// When: `CLOCK_MONOTONIC`, in nanoseconds.
    pub time_ns: u64,
    /// Whose socket (`SO_COOKIE`, socket(7)).
    pub socket: u64,
    /// The congestion control's name, ended by zeros.
    pub control: [u8; 16],
    /// Whose, as [`Trace::start`](super::Trace::start) was told.
    pub flow: u32,
    /// What happened.
    pub kind: Kind,
    /// How it was until then.
    pub ca_state: CaState,
    /// `TCP_ESTABLISHED` is 1.
    pub state: u8,
    /// cwnd.
    pub cwnd: u32,
    /// cwnd when the last segment before this came.
    pub cwnd_before: u32,
    /// cwnd before the last reduction began.
    pub prior_cwnd: u32,
    /// ssthresh; 2^31 - 1 before the first reduction.
    pub ssthresh: u32,
    /// Smoothed round-trip time, in microseconds.
    pub srtt_us: u32,
    /// Its variation, in microseconds.
    pub rttvar_us: u32,
    /// Segments sent and not acknowledged cumulatively.
    pub packets_out: u32,
    /// Of these reported by SACK, or without it by duplicate acknowledgments.
    pub sacked_out: u32,
    /// Of these marked lost.
    pub lost_out: u32,
    /// Retransmitted and not acknowledged.
    pub retrans_out: u32,
    /// Segments retransmitted so far.
    pub total_retrans: u32,
    /// Payload of a full segment, in bytes.
    pub mss: u32,
    /// First octet that is not acknowledged, as a sequence number.
    pub snd_una: u32,
    /// Next octet to be sent, as a sequence number.
    pub snd_nxt: u32,
}

/// What happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A segment has come, and is about to be handled.
    Segment {
        /// What it acknowledges, as a sequence number.
        ack: u32,
    },
    /// The congestion state is about to change.
    State {
        /// What it becomes.
        next: CaState,
    },
    /// A segment has left once more.
    Again {
        /// Its first octet, as a sequence number.
        first: u32,
        /// Behind its last.
        end: u32,
    },
}

/// The congestion state of a connection (`enum tcp_ca_state`, `linux/tcp.h`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum CaState {
    /// Nothing is amiss.
    Open,
    /// Something was reported out of order.
    Disorder,
    /// The window is being reduced for a mark or for the host's own queue.
    Cwr,
    /// Fast recovery.
    Recovery,
    /// After the retransmission timer has expired.
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
    /// Octets of one.
    pub(super) const SIZE: usize = 104;

    /// As the program has written it; `None` if it has not.
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

    /// Segments in flight as a recovery reckons them: what was sent, less what was reported or lost, and what was retransmitted.
    #[must_use]
    pub const fn in_flight(&self) -> u32 {
        let gone = self.sacked_out.saturating_add(self.lost_out);
        self.packets_out
            .saturating_sub(gone)
            .saturating_add(self.retrans_out)
    }

    /// ssthresh, once there is one.
    #[must_use]
    pub const fn ssthresh(&self) -> Option<u32> {
        if self.ssthresh < 1 << 30 {
            Some(self.ssthresh)
        } else {
            None
        }
    }

    /// The congestion control's name.
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

    /// Fails for a reading that is off by one field.
    #[test]
    fn fields_stand_where_the_program_writes_them() {
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
    fn what_no_program_writes_is_none() {
        assert_eq!(Record::of(&octets(3, [0, 0])), None);
        assert_eq!(Record::of(&octets(1, [0, 5])), None);
        assert_eq!(Record::of(&octets(0, [0, 0])[1..]), None);
    }
}
