//! The kernel's state of a TCP connection: `TCP_INFO` (tcp(7), `struct tcp_info` of `linux/tcp.h`).

use std::{
    io,
    os::fd::{AsFd, AsRawFd},
};

use anabranch_tcp::CongestionState;

/// The part of the structure that is read. An older kernel writes less; the rest is 0.
const SIZE: usize = 248;

/// The state of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TcpInfo {
    /// `TCP_ESTABLISHED` is 1.
    pub state: u8,
    /// `TCP_CA_…`: 0 open, 1 disorder, 2 congestion window reduced, 3 recovery, 4 loss.
    pub ca_state: u8,
    /// Options that both ends agreed on: [`Self::TIMESTAMPS`], [`Self::SACK`],
    /// [`Self::WINDOW_SCALING`], [`Self::ECN`].
    pub options: u8,
    /// Payload of a full segment, in bytes.
    pub snd_mss: u32,
    /// Outstanding segments, SACKed ones included.
    pub unacked: u32,
    /// Outstanding segments that are SACKed or, without SACK, the number of duplicate ACKs.
    pub sacked: u32,
    /// Outstanding segments that are marked lost.
    pub lost: u32,
    /// Retransmissions in flight.
    pub retrans: u32,
    /// Smoothed round-trip time in microseconds.
    pub rtt_us: u32,
    /// Round-trip time variation in microseconds.
    pub rttvar_us: u32,
    /// Retransmission timeout in microseconds.
    pub rto_us: u32,
    /// Slow-start threshold in segments; above 2^30 before the first reduction.
    pub snd_ssthresh: u32,
    /// Congestion window in segments.
    pub snd_cwnd: u32,
    /// Retransmitted segments.
    pub total_retrans: u32,
    /// Bytes per second; all ones without a pacing rate.
    pub pacing_rate: u64,
    /// Bytes received in order, each counted once.
    pub bytes_received: u64,
    /// Octets written and not yet sent.
    pub notsent_bytes: u32,
    /// Microseconds; all ones before the first sample.
    pub min_rtt_us: u32,
    /// Segments with data sent, retransmissions included.
    pub data_segs_out: u32,
    /// Bytes per second.
    pub delivery_rate: u64,
    /// Microseconds in which data was outstanding or waited to be sent.
    pub busy_us: u64,
    /// Busy time limited by the receive window.
    pub rwnd_limited_us: u64,
    /// Busy time limited by the send buffer, as far as the kernel notices (`docs/concepts/tcp.md`).
    pub sndbuf_limited_us: u64,
    /// Whether less than a third of the send buffer is free, so that it accepts nothing more. Not
    /// from `TCP_INFO`.
    pub is_send_buffer_full: bool,
    /// Duplicates reported by the peer (DSACK, RFC 2883).
    pub dsack_dups: u32,
    /// Segments that have arrived, as far as the peer has acknowledged them.
    pub delivered: u32,
    /// The MSS that this end advertises.
    pub advmss: u32,
    /// Doublings of the retransmission timeout.
    pub backoff: u8,
    /// Window probes without an answer.
    pub probes: u8,
    /// Segments by which a packet may be late without being lost.
    pub reordering: u32,
    /// Timeouts (Linux 6.7 and later).
    pub total_rto: u16,
    /// Whether the kernel reports `total_rto`.
    pub knows_total_rto: bool,
}

impl TcpInfo {
    /// Bits of [`Self::options`] (`TCPI_OPT_…`).
    pub const TIMESTAMPS: u8 = 1;
    /// Selective acknowledgments.
    pub const SACK: u8 = 2;
    /// Scaled windows.
    pub const WINDOW_SCALING: u8 = 4;
    /// Marks (RFC 3168).
    pub const ECN: u8 = 8;

    /// Queries the kernel about a socket.
    ///
    /// # Errors
    /// If the socket is not a TCP socket.
    ///
    /// # Panics
    /// Never: the offsets lie inside the structure.
    pub fn of(socket: impl AsFd) -> io::Result<Self> {
        let mut octets = [0_u8; SIZE];
        let mut len = libc::socklen_t::try_from(SIZE).expect("a small number");
        // SAFETY: the kernel writes at most `len` octets, and sets `len` to their number.
        let answer = unsafe {
            libc::getsockopt(
                socket.as_fd().as_raw_fd(),
                libc::IPPROTO_TCP,
                libc::TCP_INFO,
                octets.as_mut_ptr().cast(),
                &raw mut len,
            )
        };
        if answer < 0 {
            return Err(io::Error::last_os_error());
        }
        let u32_at =
            |at: usize| u32::from_ne_bytes(octets[at..at + 4].try_into().expect("four octets"));
        let u64_at =
            |at: usize| u64::from_ne_bytes(octets[at..at + 8].try_into().expect("eight octets"));
        Ok(Self {
            state: octets[0],
            ca_state: octets[1],
            probes: octets[3],
            backoff: octets[4],
            options: octets[5],
            advmss: u32_at(84),
            reordering: u32_at(88),
            delivered: u32_at(192),
            rto_us: u32_at(8),
            snd_mss: u32_at(16),
            unacked: u32_at(24),
            sacked: u32_at(28),
            lost: u32_at(32),
            retrans: u32_at(36),
            rtt_us: u32_at(68),
            rttvar_us: u32_at(72),
            snd_ssthresh: u32_at(76),
            snd_cwnd: u32_at(80),
            total_retrans: u32_at(100),
            pacing_rate: u64_at(104),
            bytes_received: u64_at(128),
            notsent_bytes: u32_at(144),
            min_rtt_us: u32_at(148),
            data_segs_out: u32_at(156),
            delivery_rate: u64_at(160),
            busy_us: u64_at(168),
            rwnd_limited_us: u64_at(176),
            sndbuf_limited_us: u64_at(184),
            is_send_buffer_full: is_send_buffer_full(&socket),
            dsack_dups: u32_at(216),
            total_rto: u16::from_ne_bytes([octets[240], octets[241]]),
            knows_total_rto: len >= 244,
        })
    }

    /// Segments in the network, as recovery estimates them (RFC 6675 §4, `SetPipe`).
    #[must_use]
    pub const fn in_flight(&self) -> u32 {
        let gone = self.sacked.saturating_add(self.lost);
        self.unacked
            .saturating_sub(gone)
            .saturating_add(self.retrans)
    }

    /// Bytes of data received in order: the kernel counts the end of the stream as one more (RFC
    /// 9293 §3.4).
    #[must_use]
    pub const fn data_received(&self) -> u64 {
        self.bytes_received
            .saturating_sub(Self::has_ended(self.state) as u64)
    }

    /// Whether the peer's end of the stream has been received in this state.
    #[must_use]
    pub const fn has_ended(state: u8) -> bool {
        // TIME-WAIT, CLOSE-WAIT, LAST-ACK, CLOSING.
        matches!(state, 6 | 8 | 9 | 11)
    }

    /// The state of congestion control.
    #[must_use]
    pub const fn congestion_state(&self) -> CongestionState {
        CongestionState::of_tcp_info(self.ca_state, self.snd_cwnd < self.snd_ssthresh)
    }
}

/// Whether a writer that waits for room would go on waiting: `poll` reports a socket as writable
/// when less than two thirds of its send buffer, by memory, are used. Reads `SO_MEMINFO`
/// (`linux/sock_diag.h`), because `poll` itself would change the kernel's behaviour. If the kernel
/// does not answer, there is room.
fn is_send_buffer_full(socket: &impl AsFd) -> bool {
    /// `SK_MEMINFO_SNDBUF`, `SK_MEMINFO_WMEM_QUEUED`, and the number of entries.
    const SNDBUF: usize = 3;
    const QUEUED: usize = 5;
    const COUNT: usize = 9;
    let mut memory = [0_u32; COUNT];
    let mut len = libc::socklen_t::try_from(size_of_val(&memory)).expect("a small number");
    // SAFETY: the kernel writes at most `len` octets there.
    let answer = unsafe {
        libc::getsockopt(
            socket.as_fd().as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_MEMINFO,
            memory.as_mut_ptr().cast(),
            &raw mut len,
        )
    };
    let (taken, whole) = (u64::from(memory[QUEUED]), u64::from(memory[SNDBUF]));
    answer == 0 && whole > 0 && 3 * taken > 2 * whole
}

/// Bounds a socket's segments (`TCP_MAXSEG`, tcp(7)).
pub fn set_max_segment(socket: &impl AsFd, bytes: i32) -> io::Result<()> {
    set(socket, libc::IPPROTO_TCP, libc::TCP_MAXSEG, bytes)
}

/// Bounds the receive window of a socket (`TCP_WINDOW_CLAMP`, tcp(7)), and ends the tuning of its
/// buffer, which would move the bound.
pub fn set_window(socket: &impl AsFd, bytes: i32) -> io::Result<()> {
    // The kernel counts the memory of packets, up to several times their payload, and doubles the
    // value that it is given.
    let memory = bytes.saturating_mul(2);
    set(socket, libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, memory).map_err(|error| {
        let what =
            "a `receive_window` for a single socket needs CAP_NET_ADMIN outside of user namespaces";
        io::Error::new(error.kind(), format!("{what}: {error}"))
    })?;
    bound_window(socket, bytes)
}

/// Bounds the window without changing the buffer.
pub fn bound_window(socket: &impl AsFd, bytes: i32) -> io::Result<()> {
    set(socket, libc::IPPROTO_TCP, libc::TCP_WINDOW_CLAMP, bytes)
}

/// Attaches a BPF program, which sees the packets that a socket receives (`SO_ATTACH_BPF`,
/// socket(7)).
pub fn attach_filter(socket: &impl AsFd, program: &impl AsFd) -> io::Result<()> {
    let program = program.as_fd().as_raw_fd();
    set(socket, libc::SOL_SOCKET, libc::SO_ATTACH_BPF, program)
}

/// The cookie of the network namespace that a socket is in (`SO_NETNS_COOKIE`, Linux 5.14 and
/// later).
pub fn namespace_cookie(socket: &impl AsFd) -> io::Result<u64> {
    let mut cookie = 0_u64;
    let mut len = libc::socklen_t::try_from(size_of::<u64>()).expect("a small number");
    // SAFETY: the option is a number of eight octets, whose address and size these are.
    let answer = unsafe {
        libc::getsockopt(
            socket.as_fd().as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_NETNS_COOKIE,
            (&raw mut cookie).cast(),
            &raw mut len,
        )
    };
    if answer < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(cookie)
}

pub(super) fn set(socket: &impl AsFd, level: i32, option: i32, value: i32) -> io::Result<()> {
    // SAFETY: the option reads an int, whose address and size these are.
    let answer = unsafe {
        libc::setsockopt(
            socket.as_fd().as_raw_fd(),
            level,
            option,
            (&raw const value).cast(),
            libc::socklen_t::try_from(size_of::<i32>()).expect("a small number"),
        )
    };
    if answer < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Detects a count of all unacknowledged segments.
    #[test]
    fn sacked_and_lost_segments_are_not_in_flight() {
        let info = TcpInfo {
            unacked: 30,
            sacked: 9,
            lost: 3,
            retrans: 2,
            ..TcpInfo::default()
        };
        assert_eq!(info.in_flight(), 20);
    }
}
