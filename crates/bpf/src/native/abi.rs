//! The structures of `bpf/include/vmlinux.h`, field by field.
//!
//! The compiled control exports its layout of them, and [`LAYOUT`] is compared with it before the
//! control runs. A `long` has 64 bits, as on every 64-bit Linux and macOS.

use std::mem::offset_of;

/// `struct sock`.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
#[expect(clippy::struct_field_names, reason = "the kernel's names")]
pub struct Sock {
    pub sk_pacing_status: u32,
    pub sk_pacing_rate: u64,
    pub sk_max_pacing_rate: u64,
}

/// `struct tcp_sock`, with the fields of the `inet_connection_sock` at its start.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub struct TcpSock {
    pub sk: Sock,
    pub icsk_ca_state: u8,
    pub icsk_retransmits: u8,
    pub icsk_ca_priv: [u64; 13],
    pub snd_cwnd: u32,
    pub snd_cwnd_cnt: u32,
    pub snd_cwnd_clamp: u32,
    pub snd_cwnd_stamp: u32,
    pub snd_cwnd_used: u32,
    pub snd_ssthresh: u32,
    pub prior_cwnd: u32,
    pub prior_ssthresh: u32,
    pub srtt_us: u32,
    pub rttvar_us: u32,
    pub mss_cache: u32,
    pub snd_una: u32,
    pub snd_nxt: u32,
    pub packets_out: u32,
    pub lost_out: u32,
    pub sacked_out: u32,
    pub retrans_out: u32,
    pub max_packets_out: u32,
    pub delivered: u32,
    pub delivered_ce: u32,
    pub lost: u32,
    pub app_limited: u32,
    pub reordering: u32,
    pub tcp_wstamp_ns: u64,
    pub tcp_mstamp: u64,
    pub delivered_mstamp: u64,
    pub first_tx_mstamp: u64,
    pub is_cwnd_limited: u8,
}

/// `struct ack_sample`.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub struct AckSample {
    pub pkts_acked: u32,
    pub rtt_us: i32,
    pub in_flight: u32,
}

/// `struct rate_sample`.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub struct RateSample {
    pub prior_mstamp: u64,
    pub prior_delivered: u32,
    pub prior_delivered_ce: u32,
    pub delivered: i32,
    pub delivered_ce: i32,
    pub interval_us: i64,
    pub rtt_us: i64,
    pub losses: i32,
    pub acked_sacked: u32,
    pub prior_in_flight: u32,
    pub is_app_limited: bool,
    pub is_retrans: bool,
    pub is_ack_delayed: bool,
}

type Call = unsafe extern "C" fn(*mut TcpSock);
type Asks = unsafe extern "C" fn(*mut TcpSock) -> u32;

/// `struct tcp_congestion_ops`: the functions of a control.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct Ops {
    pub ssthresh: Option<Asks>,
    pub cong_avoid: Option<unsafe extern "C" fn(*mut TcpSock, u32, u32)>,
    pub set_state: Option<unsafe extern "C" fn(*mut TcpSock, u8)>,
    pub cwnd_event: Option<unsafe extern "C" fn(*mut TcpSock, u32)>,
    pub in_ack_event: Option<unsafe extern "C" fn(*mut TcpSock, u32)>,
    pub pkts_acked: Option<unsafe extern "C" fn(*mut TcpSock, *const AckSample)>,
    pub min_tso_segs: Option<Asks>,
    pub cong_control: Option<unsafe extern "C" fn(*mut TcpSock, u32, i32, *const RateSample)>,
    pub undo_cwnd: Option<Asks>,
    pub sndbuf_expand: Option<Asks>,
    pub get_info: Option<Call>,
    pub name: [u8; 16],
    pub key: u32,
    pub flags: u32,
    pub init: Option<Call>,
    pub release: Option<Call>,
}

/// `enum tcp_ca_state`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum State {
    Open = 0,
    Cwr = 2,
    Recovery = 3,
    Loss = 4,
}

/// `enum tcp_ca_event`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub enum Event {
    TxStart = 0,
    CwndRestart = 1,
    CompleteCwr = 2,
    Loss = 3,
    EcnIsCe = 5,
}

/// `TCP_INFINITE_SSTHRESH`.
pub const INFINITE_SSTHRESH: u32 = 0x7fff_ffff;

/// The expected value of `anabranch_layout` in the shim.
pub const LAYOUT: [usize; 12] = [
    size_of::<TcpSock>(),
    size_of::<Ops>(),
    size_of::<AckSample>(),
    size_of::<RateSample>(),
    offset_of!(TcpSock, icsk_ca_priv),
    offset_of!(TcpSock, snd_cwnd),
    offset_of!(TcpSock, tcp_mstamp),
    offset_of!(TcpSock, is_cwnd_limited),
    offset_of!(Ops, name),
    offset_of!(Ops, init),
    offset_of!(RateSample, interval_us),
    offset_of!(RateSample, is_app_limited),
];
