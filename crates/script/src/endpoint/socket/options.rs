//! Socket options.

use anabranch_tcp::Settings;

use super::{
    super::{fast_open, switches},
    Socket,
};
use crate::{error::choices, syntax::OptionValue, target::Answer};

/// Socket options with an effect.
const OPTIONS: [&str; 20] = [
    "SO_REUSEADDR",
    "SO_RCVBUF",
    "SO_SNDBUF",
    "SO_ZEROCOPY",
    "SO_LINGER",
    "TCP_NODELAY",
    "TCP_CORK",
    "TCP_MAXSEG",
    "TCP_CONGESTION",
    "TCP_SYNCNT",
    "TCP_INQ",
    "TCP_NOTSENT_LOWAT",
    "TCP_FASTOPEN",
    "TCP_FASTOPEN_CONNECT",
    "TCP_FASTOPEN_KEY",
    "TCP_FASTOPEN_NO_COOKIE",
    "SO_PRIORITY",
    "IP_MTU_DISCOVER",
    "IP_RECVERR",
    "IP_TOS",
];
/// Socket options that can be read.
const READABLE: [&str; 8] = [
    "SO_ERROR",
    "SO_SNDBUF",
    "SO_ZEROCOPY",
    "TCP_MAXSEG",
    "TCP_NODELAY",
    "TCP_CORK",
    "TCP_NOTSENT_LOWAT",
    "TCP_FASTOPEN",
];
/// Without effect on the packets of one connection.
const NO_EFFECT: [&str; 7] = [
    "SO_MARK",
    "SO_REUSEADDR",
    "SO_REUSEPORT",
    "SO_PRIORITY",
    "IP_MTU_DISCOVER",
    "IP_RECVERR",
    "IP_TOS",
];
/// Errors by their numbers.
const ERRORS: [(&str, i64); 6] = [
    ("EPIPE", 32),
    ("ECONNRESET", 104),
    ("ETIMEDOUT", 110),
    ("ECONNREFUSED", 111),
    ("EHOSTUNREACH", 113),
    ("ENETUNREACH", 101),
];

impl Socket {
    /// Sets a socket option.
    pub(in crate::endpoint) fn set_option(
        &mut self,
        name: &str,
        value: &OptionValue,
        is_announced: bool,
    ) -> Result<Answer, String> {
        let done = Ok(Answer::Value(0));
        if NO_EFFECT.contains(&name) {
            return done;
        }
        let number = match (name, value) {
            ("SO_LINGER", OptionValue::Linger(seconds)) => {
                if seconds.is_some_and(|seconds| seconds > 0) {
                    return Err("SO_LINGER with a time is not supported".to_owned());
                }
                self.options.linger = *seconds;
                return done;
            }
            ("TCP_FASTOPEN_KEY", OptionValue::Text(octets)) => {
                return Ok(match fast_open::keys_of_option(octets) {
                    Some(keys) => {
                        self.options.fast_open_keys = keys;
                        Answer::Value(0)
                    }
                    None => Answer::Error("EINVAL"),
                });
            }
            ("TCP_CONGESTION", OptionValue::Text(octets)) => {
                self.before_opening(name)?;
                let control = String::from_utf8_lossy(octets);
                self.options.control = Some(switches::control(&control)?);
                return done;
            }
            (_, OptionValue::Number(number)) => *number,
            _ => return Err(format!("{name}: expected a number, such as `[1]`")),
        };
        let bytes = u64::try_from(number).map_err(|_| format!("{name}: {number} is negative"))?;
        let on = number != 0;
        match name {
            "SO_RCVBUF" => {
                self.before_opening(name)?;
                self.options.receive_buffer = Some(bytes);
            }
            "SO_SNDBUF" => {
                self.options.send_buffer = Some(bytes);
                if let Some(end) = self.end.as_mut().filter(|_| !is_announced) {
                    let octets = memory(end.settings(), bytes);
                    end.set_send_buffer(octets);
                }
            }
            "SO_ZEROCOPY" => self.options.zero_copy = on,
            "TCP_NODELAY" => {
                self.options.nodelay = Some(on);
                if let Some(end) = self.end.as_mut().filter(|_| !is_announced) {
                    end.set_nagle(!on);
                    if on {
                        // Data that waits is sent at once, even if the socket is corked.
                        end.hold(false);
                        end.push();
                    }
                }
            }
            "TCP_CORK" => {
                self.options.is_corked = on;
                if let Some(end) = &mut self.end {
                    end.hold(on);
                    if !on {
                        end.push();
                    }
                }
            }
            "TCP_MAXSEG" => {
                if self.was_open {
                    return Err(format!("{name} must be set before the connection is open"));
                }
                match u32::try_from(number) {
                    Ok(mss) if (88..=65_535).contains(&mss) => self.options.maxseg = Some(mss),
                    _ => return Ok(Answer::Error("EINVAL")),
                }
            }
            "TCP_SYNCNT" => match u32::try_from(number) {
                Ok(count) if (1..=127).contains(&count) => {
                    self.options.syn_retries = Some(count);
                    if let Some(end) = &mut self.end {
                        end.set_syn_retries(count);
                    }
                }
                _ => return Ok(Answer::Error("EINVAL")),
            },
            "TCP_INQ" => self.options.reports_unread = on,
            "TCP_NOTSENT_LOWAT" => self.options.notsent_lowat = Some(bytes),
            "TCP_FASTOPEN" => {
                self.options.fast_open_queue = u32::try_from(bytes).unwrap_or(u32::MAX);
            }
            "TCP_FASTOPEN_CONNECT" => self.options.fast_open_connect = on,
            "TCP_FASTOPEN_NO_COOKIE" => self.options.fast_open_without_cookie = on,
            _ => {
                let hint = choices(name, &OPTIONS);
                return Err(format!("there is no socket option {name} here; {hint}"));
            }
        }
        done
    }

    /// Restores the hold of a corked socket after a push.
    pub(in crate::endpoint) fn hold_again(&mut self) {
        if let Some(end) = &mut self.end {
            end.hold(self.options.is_corked);
        }
    }

    fn before_opening(&self, name: &str) -> Result<(), String> {
        let is_pristine = self.listens && !self.was_open;
        if self.end.is_some() && !is_pristine {
            return Err(format!("{name} must be set before listen or connect"));
        }
        Ok(())
    }

    /// Reads a socket option.
    pub(in crate::endpoint) fn get_option(
        &mut self,
        name: &str,
        nagle: bool,
    ) -> Result<Answer, String> {
        Ok(Answer::Value(match name {
            "SO_ERROR" => {
                let error = self.take_error();
                let found = ERRORS.iter().find(|(name, _)| Some(*name) == error);
                found.map_or(0, |(_, number)| *number)
            }
            "SO_SNDBUF" => match &self.end {
                Some(end) => i64::try_from(end.send_buffer()).unwrap_or(i64::MAX),
                None => return Err("SO_SNDBUF is known once the socket listens or connects".into()),
            },
            "SO_ZEROCOPY" => i64::from(self.options.zero_copy),
            "TCP_MAXSEG" => match (&self.end, self.options.maxseg) {
                (Some(end), _) if end.state().is_synchronized() => i64::from(end.smss()),
                (_, maxseg) => i64::from(maxseg.unwrap_or(536)),
            },
            "TCP_NODELAY" => i64::from(self.options.nodelay.unwrap_or(!nagle)),
            "TCP_CORK" => i64::from(self.options.is_corked),
            "TCP_NOTSENT_LOWAT" => {
                i64::try_from(self.options.notsent_lowat.unwrap_or(0)).unwrap_or(i64::MAX)
            }
            "TCP_FASTOPEN" => i64::from(self.options.fast_open_queue),
            _ => {
                let hint = choices(name, &READABLE);
                return Err(format!("there is no socket option {name} here; {hint}"));
            }
        }))
    }
}

/// Octets of a send buffer: Linux doubles the size that an application sets for its own memory, which
/// its profile counts (socket(7)).
pub(super) fn memory(settings: &Settings, octets: u64) -> u64 {
    let is_memory = settings.send_autotuning_start.get() > 0;
    if is_memory { 2 * octets } else { octets }
}
