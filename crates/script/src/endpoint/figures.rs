//! The figures of our endpoint that scripts may query.

use anabranch_core::{
    body::Octets,
    units::{Duration, Instant},
};
use anabranch_tcp::{Endpoint, Refusal};
use anabranch_wire::{DecodeError, Discards};

/// All figures: a kernel's first, then further ones of our endpoint.
pub(super) const ALL: [&str; crate::KERNEL_FIGURES.len() + OWN.len()] = {
    let mut all = [""; crate::KERNEL_FIGURES.len() + OWN.len()];
    let (kernel, _) = all.split_at_mut(crate::KERNEL_FIGURES.len());
    kernel.copy_from_slice(&crate::KERNEL_FIGURES);
    let (_, own) = all.split_at_mut(crate::KERNEL_FIGURES.len());
    own.copy_from_slice(&OWN);
    all
};

const OWN: [&str; 34] = [
    "fast_recoveries",
    "undone",
    "probes",
    "reneged",
    "window_probes",
    "duplicate_segments",
    "ce_segments",
    "ecn_reductions",
    "challenge_acks",
    "malformed",
    "refused.unsent_ack",
    "refused.old_ack",
    "refused.sack_block",
    "refused.blind_reset",
    "refused.old_reset",
    "refused.blind_syn",
    "refused.outside_window",
    "refused.missing_timestamp",
    "refused.old_timestamp",
    "refused.flags",
    "discarded",
    "discarded.ip-truncated",
    "discarded.ip-version",
    "discarded.ip-header-length",
    "discarded.ip-length",
    "discarded.ip-checksum",
    "discarded.fragment",
    "discarded.ipv6-extension",
    "discarded.protocol",
    "discarded.tcp-truncated",
    "discarded.data-offset",
    "discarded.tcp-checksum",
    "discarded.option-length",
    "discarded.option-past-end",
];

/// Figures of a kernel that our endpoint does not count; assertions on them are skipped.
pub(super) const LACKING: [&str; 10] = [
    "tcpi_unacked",
    "tcpi_sacked",
    "tcpi_lost",
    "tcpi_retrans",
    "tcpi_data_segs_out",
    "tcpi_busy_time",
    "tcpi_delivered",
    "tcpi_backoff",
    "tcpi_probes",
    "tcpi_reordering",
];

/// The figure called `name`; `None` if it is unknown or needs a connection and there is none.
pub(super) fn of(
    end: Option<&Endpoint<Octets>>,
    discards: &Discards,
    now: Instant,
    name: &str,
) -> Option<i64> {
    let number = |n: u64| i64::try_from(n).unwrap_or(i64::MAX);
    if let Some(reason) = name.strip_prefix("discarded.") {
        let error = DecodeError::ALL.into_iter().find(|e| e.name() == reason)?;
        return Some(number(discards.of(error)));
    }
    if name == "discarded" {
        return Some(number(discards.total()));
    }
    let end = end?;
    if let Some(reason) = name.strip_prefix("refused.") {
        let reason = Refusal::ALL.into_iter().find(|r| r.name() == reason)?;
        return Some(number(end.refusals().of(reason)));
    }
    let (snapshot, stats) = (end.snapshot(), end.stats());
    let mss = u64::from(end.smss());
    let micros = |d: Duration| number(d.as_picos() / 1_000_000);
    Some(match name {
        "tcpi_state" => i64::from(end.state().tcp_info_number()),
        "tcpi_ca_state" => i64::from(snapshot.state.tcp_info_number()),
        "tcpi_snd_cwnd" => number(snapshot.cwnd.get() / mss),
        "tcpi_snd_ssthresh" => snapshot
            .ssthresh
            .map_or(i64::from(i32::MAX), |bytes| number(bytes.get() / mss)),
        "tcpi_options" => options(end),
        "tcpi_advmss" => number(u64::from(end.settings().mss_option())),
        "tcpi_snd_mss" => number(mss),
        "tcpi_notsent_bytes" => number(end.unsent()),
        "tcpi_rwnd_limited" => micros(end.limit_times(now).rwnd),
        "tcpi_sndbuf_limited" => micros(end.limit_times(now).send_buffer),
        "tcpi_rtt" => micros(snapshot.srtt),
        "tcpi_rttvar" => micros(snapshot.rttvar),
        "tcpi_rto" => micros(snapshot.rto),
        "tcpi_min_rtt" => micros(snapshot.min_rtt),
        "tcpi_total_retrans" => number(stats.retransmitted_packets),
        "tcpi_dsack_dups" => i64::from(stats.duplicates_reported),
        "timeouts" => number(stats.timeouts),
        "fast_recoveries" => number(stats.fast_recoveries),
        "undone" => i64::from(stats.undone),
        "probes" => i64::from(stats.probes),
        "reneged" => i64::from(stats.reneged),
        "window_probes" => number(stats.window_probes),
        "duplicate_segments" => number(stats.duplicate_segments),
        "ce_segments" => number(stats.ce_segments),
        "ecn_reductions" => number(stats.ecn_reductions),
        "challenge_acks" => i64::from(stats.challenge_acks),
        "malformed" => number(stats.malformed),
        _ => return None,
    })
}

/// The options that both ends use.
fn options(end: &Endpoint<Octets>) -> i64 {
    use crate::constants as c;
    let agreed = end.agreed();
    let bits = [
        (agreed.timestamps, c::TCPI_OPT_TIMESTAMPS),
        (agreed.sack, c::TCPI_OPT_SACK),
        (agreed.window_scaling, c::TCPI_OPT_WSCALE),
        (agreed.ecn, c::TCPI_OPT_ECN),
        (end.fast_open().syn_data, c::TCPI_OPT_SYN_DATA),
    ];
    let set = bits.into_iter().filter(|(on, _)| *on);
    set.map(|(_, bit)| bit).sum()
}
