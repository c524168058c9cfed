//! State of a sender's congestion control: open, disorder, reduction, recovery or loss.

/// The states of Linux's `tcpi_ca_state`; its first one is divided in two.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CongestionState {
    /// No sign of congestion, and cwnd is below ssthresh.
    SlowStart,
    /// No sign of congestion.
    Open,
    /// Duplicate acknowledgments arrive, or data beyond a gap is SACKed.
    Disorder,
    /// The window is being reduced without a loss (Linux: `CWR`).
    Reduction,
    /// Fast recovery (RFC 5681 §3.2).
    Recovery,
    /// After a timeout.
    Loss,
}

impl CongestionState {
    /// Its number in `tcpi_ca_state` of Linux's `struct tcp_info`.
    #[must_use]
    pub const fn tcp_info_number(self) -> u8 {
        match self {
            Self::SlowStart | Self::Open => 0,
            Self::Disorder => 1,
            Self::Reduction => 2,
            Self::Recovery => 3,
            Self::Loss => 4,
        }
    }

    /// The state of a number of `tcpi_ca_state`. `slow_start`: cwnd is below ssthresh.
    #[must_use]
    pub const fn of_tcp_info(number: u8, slow_start: bool) -> Self {
        match number {
            0 if slow_start => Self::SlowStart,
            0 => Self::Open,
            1 => Self::Disorder,
            2 => Self::Reduction,
            4 => Self::Loss,
            _ => Self::Recovery,
        }
    }

    /// Its name in the columns `state` of samples; a window being reduced has one word.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::SlowStart => "slow-start",
            Self::Open => "open",
            Self::Disorder => "disorder",
            Self::Reduction | Self::Recovery => "recovery",
            Self::Loss => "loss",
        }
    }
}
