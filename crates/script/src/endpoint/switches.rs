//! Switches of our endpoint in scripts: by the names of kernel settings, which a kernel accepts as
//! well, or by our own names (`--transport.NAME=VALUE`), which another target maps to its own.

use anabranch_congestion::{self as cc};
use anabranch_core::units::{Bytes, Duration, text::Limit};
use anabranch_tcp::{EcnMode, Overrides, Recovery, RecoveryPace, Settings, settings::IdleRestart};
use serde_json::{Value, json};

use crate::error::choices;

const SYSCTLS: [&str; 21] = [
    "net.ipv4.tcp_sack",
    "net.ipv4.tcp_dsack",
    "net.ipv4.tcp_timestamps",
    "net.ipv4.tcp_window_scaling",
    "net.ipv4.tcp_ecn",
    "net.ipv4.tcp_ecn_option",
    "net.ipv4.tcp_invalid_ratelimit",
    "net.ipv4.tcp_recovery",
    "net.ipv4.tcp_early_retrans",
    "net.ipv4.tcp_frto",
    "net.ipv4.tcp_reordering",
    "net.ipv4.tcp_max_reordering",
    "net.ipv4.tcp_slow_start_after_idle",
    "net.ipv4.tcp_moderate_rcvbuf",
    "net.ipv4.tcp_rto_min_us",
    "net.ipv4.tcp_retries2",
    "net.ipv4.tcp_syn_retries",
    "net.ipv4.tcp_synack_retries",
    "net.ipv4.tcp_rmem",
    "net.ipv4.tcp_wmem",
    "net.ipv4.tcp_congestion_control",
];

/// Settings of Linux with the values at which our TCP behaves as Linux does; without a value, none
/// has an effect on one connection.
const AS_LINUX: [(&str, &[&str]); 15] = [
    ("net.ipv4.tcp_autocorking", &[]),
    ("net.ipv4.tcp_ecn_fallback", &[]),
    ("net.ipv4.tcp_fack", &[]),
    ("net.ipv4.tcp_fastopen_blackhole_timeout_sec", &["0"]),
    ("net.ipv4.tcp_min_tso_segs", &[]),
    ("net.ipv4.tcp_mtu_probing", &["0"]),
    ("net.ipv4.tcp_no_metrics_save", &[]),
    ("net.ipv4.tcp_orphan_retries", &[]),
    ("net.ipv4.tcp_pacing_ca_ratio", &["120"]),
    ("net.ipv4.tcp_pacing_ss_ratio", &["200"]),
    ("net.ipv4.tcp_retries1", &["3"]),
    ("net.ipv4.tcp_rto_max_ms", &["120000"]),
    ("net.ipv4.tcp_syncookies", &[]),
    ("net.ipv4.tcp_tso_win_divisor", &["3"]),
    ("net.ipv4.tcp_workaround_signed_windows", &["0"]),
];

/// The congestion control called `name` with its defaults, or one with parameters in JSON
/// (`{"cubic":{"count":"bytes"}}`), for a wrong TCP that differs in one of them.
pub(super) fn control(name: &str) -> Result<cc::Config, String> {
    if name.starts_with('{') {
        return serde_json::from_str(name).map_err(|error| error.to_string());
    }
    let all = cc::registry();
    let found = all.iter().find(|(meta, ..)| meta.name == name);
    found.map(|(_, config, _)| config.clone()).ok_or_else(|| {
        let known: Vec<&str> = all.iter().map(|(meta, ..)| meta.name).collect();
        let hint = choices(name, &known);
        format!("there is no congestion control `{name}`; {hint}")
    })
}

/// `settings` with one switch changed.
pub(super) fn turned(settings: &Settings, switch: &str, value: &str) -> Result<Settings, String> {
    let names = [Settings::SWITCHES, Settings::SHORTHANDS].concat();
    if !names.contains(&switch) {
        return Err(format!(
            "there is no switch `{switch}`; {}",
            choices(switch, &names)
        ));
    }
    let value = match value {
        "on" => Value::Bool(true),
        "off" if switch_is_on_or_off(switch) => Value::Bool(false),
        _ => serde_json::from_str(value).unwrap_or_else(|_| Value::String(value.to_owned())),
    };
    let over: Overrides =
        serde_json::from_value(json!({ switch: value })).map_err(|error| error.to_string())?;
    settings
        .with(&over)
        .map_err(|problem| format!("{}: {}", problem.field, problem.message))
}

/// Whether `off` is the opposite of `on` for this switch, not one of several words.
fn switch_is_on_or_off(switch: &str) -> bool {
    serde_json::from_value::<Overrides>(json!({ switch: false })).is_ok()
}

/// Settings that the host has, and not its connections.
const OF_HOST: [&str; 3] = [
    "net.ipv4.tcp_fastopen",
    "net.ipv4.tcp_fastopen_key",
    "net.ipv4.tcp_notsent_lowat",
];

/// Whether there is a setting of this name.
pub(super) fn is_known(name: &str) -> bool {
    SYSCTLS.contains(&name)
        || OF_HOST.contains(&name)
        || AS_LINUX.iter().any(|(known, _)| *known == name)
}

/// Sets the sizes of buffers: the smallest, the first and the largest. Returns whether these are such sizes.
fn sets_memory(s: &mut Settings, name: &str, text: &str) -> bool {
    let sizes: Result<Vec<u64>, _> = text.split_whitespace().map(str::parse).collect();
    let Ok([_, first, most]) = sizes.as_deref() else {
        return false;
    };
    match name {
        "net.ipv4.tcp_wmem" => {
            s.send_autotuning_start = Bytes::new(*first);
            s.send_buffer = Limit::Bytes(Bytes::new(*most));
        }
        // Half of the memory is for the segments' headers.
        "net.ipv4.tcp_rmem" => s.receive_window = Limit::Bytes(Bytes::new(most / 2)),
        _ => return false,
    }
    true
}

/// Sets the switches that correspond to a kernel setting.
pub(super) fn sysctl(s: &mut Settings, name: &str, text: &str) -> Result<(), String> {
    if let Some((_, accepted)) = AS_LINUX.iter().find(|(known, _)| *known == name) {
        if accepted.is_empty() || accepted.contains(&text) {
            return Ok(());
        }
        return Err(format!(
            "there is no setting {name}={text} here; expected {}",
            accepted.join(" or ")
        ));
    }
    if sets_memory(s, name, text) {
        return Ok(());
    }
    let value = match text.strip_prefix("0x") {
        Some(hex) => i64::from_str_radix(hex, 16),
        None => text.parse(),
    };
    let value = value.unwrap_or(-1);
    let on = value != 0;
    let unknown = || {
        Err(format!(
            "there is no setting {name}={text} here; {}",
            choices(name, &SYSCTLS)
        ))
    };
    let Ok(count) = u32::try_from(value) else {
        return unknown();
    };
    match name {
        "net.ipv4.tcp_sack" => {
            s.sack = on;
            s.dsack &= on;
            if !on && s.recovery.needs_sack() {
                s.recovery = Recovery::NewReno;
                s.tlp = false;
                if !s.recovery.permits(s.recovery_pace) {
                    s.recovery_pace = RecoveryPace::Pipe;
                }
            }
        }
        "net.ipv4.tcp_dsack" => s.dsack = on && s.sack,
        "net.ipv4.tcp_timestamps" => {
            s.timestamps = on;
            s.eifel &= on;
        }
        "net.ipv4.tcp_window_scaling" => s.window_scaling = on,
        "net.ipv4.tcp_ecn" => {
            s.ecn = match value {
                0 => EcnMode::Off,
                1 => EcnMode::Rfc3168,
                3 => EcnMode::Accecn,
                _ => return unknown(),
            };
        }
        "net.ipv4.tcp_ecn_option" => {
            s.ecn = match (s.ecn, value) {
                (EcnMode::Accecn | EcnMode::AccecnWithoutOption, 0) => EcnMode::AccecnWithoutOption,
                (EcnMode::Accecn | EcnMode::AccecnWithoutOption, 2) => EcnMode::Accecn,
                (other, 0 | 2) => other,
                _ => return unknown(),
            }
        }
        "net.ipv4.tcp_invalid_ratelimit" => {
            s.challenge_ack_interval = Duration::from_millis(u64::from(count));
        }
        "net.ipv4.tcp_recovery" if value <= 1 && s.sack => {
            s.recovery = if on {
                Recovery::Rack
            } else {
                Recovery::Rfc6675
            };
            s.tlp &= on;
            if !s.recovery.permits(s.recovery_pace) {
                s.recovery_pace = RecoveryPace::Pipe;
            }
        }
        "net.ipv4.tcp_early_retrans" if matches!(value, 0 | 3 | 4) => {
            s.tlp = on && s.recovery == Recovery::Rack;
        }
        "net.ipv4.tcp_frto" => s.frto = on,
        "net.ipv4.tcp_reordering" => s.set_dupthresh(count.max(1)),
        "net.ipv4.tcp_max_reordering" => s.max_dupthresh = count.max(s.dupthresh),
        "net.ipv4.tcp_slow_start_after_idle" => {
            s.idle_restart = if on {
                IdleRestart::Rfc2861
            } else {
                IdleRestart::Off
            };
        }
        "net.ipv4.tcp_moderate_rcvbuf" => s.receive_autotuning = on,
        "net.ipv4.tcp_retries2" => s.retries = count,
        "net.ipv4.tcp_syn_retries" => s.syn_retries = count,
        "net.ipv4.tcp_synack_retries" => s.syn_ack_retries = count,
        "net.ipv4.tcp_rto_min_us" => s.min_rto = Duration::from_micros(u64::from(count)),
        _ => return unknown(),
    }
    Ok(())
}
