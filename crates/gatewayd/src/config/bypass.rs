//! Traffic that does not use the tunnel.

use std::{fmt, str::FromStr};

use anabranch_document::{
    error::choice,
    from_text,
    select::{Dscp, Many, Ports, Prefix},
};
use nix::unistd::User;
use serde::Deserialize;

use super::value::is_host;

/// The most rules of a bypass: each packet of the host is compared with them.
pub const RULES: usize = 4_096;
/// The most addresses of a name.
pub const ADDRESSES: usize = 128;

/// Packets that do not use the tunnel: they have one value of each key that is given.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Bypass {
    /// Destination addresses: `"192.0.2.0/24"`, or a list of these.
    pub prefix: Many<Prefix>,
    /// Source addresses, of forwarded packets and of programs that choose theirs.
    pub source: Many<Prefix>,
    /// Names whose addresses are destinations: `"video.example.net"`, or a list of these.
    pub domain: Many<Domain>,
    /// Ports of either end, over TCP or UDP: `443`, `"5000-5010"`, or a list of these.
    pub port: Many<Ports>,
    /// The protocol over IP.
    pub protocol: Option<Protocol>,
    /// Code points: `"ef"`, `"af41"`, `"cs5"`, a number, or a list of these.
    pub dscp: Many<Dscp>,
    /// Users of processes of this machine: names, numbers, or a list of these.
    pub user: Many<Account>,
    /// Firewall marks: `7`, `"0x10/0xf0"`, or a list of these.
    pub mark: Many<Mark>,
}

impl Bypass {
    /// Whether there is no key.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// The greatest number of its rules, with all addresses that its domains may have.
    pub fn rules(&self) -> usize {
        let destinations = self.prefix.0.len() + self.domain.0.len() * ADDRESSES;
        let many = |count: usize| count.max(1);
        let values = [
            self.source.0.len(),
            self.port.0.len() * 2,
            self.dscp.0.len(),
            self.user.0.len(),
            self.mark.0.len(),
        ];
        let others = values.into_iter().map(many);
        let destinations = if destinations == 0 { 2 } else { destinations };
        others.fold(destinations, usize::saturating_mul)
    }

    /// The keys and values, for people.
    pub fn text(&self) -> String {
        let one = |name: &str, values: Vec<String>| {
            (!values.is_empty()).then(|| format!("{name} {}", values.join(" or ")))
        };
        let all = [
            one("to", texts(&self.prefix)),
            one("from", texts(&self.source)),
            one("domain", texts(&self.domain)),
            one("port", texts(&self.port)),
            one(
                "protocol",
                self.protocol.iter().map(ToString::to_string).collect(),
            ),
            one(
                "dscp",
                self.dscp
                    .0
                    .iter()
                    .map(|dscp| dscp.get().to_string())
                    .collect(),
            ),
            one("user", texts(&self.user)),
            one("mark", texts(&self.mark)),
        ];
        all.into_iter().flatten().collect::<Vec<_>>().join(", ")
    }
}

fn texts<T: ToString>(many: &Many<T>) -> Vec<String> {
    many.0.iter().map(ToString::to_string).collect()
}

/// A protocol over IP.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Protocol {
    Tcp,
    Udp,
    Icmp,
    #[serde(rename = "icmpv6")]
    IcmpV6,
}

impl Protocol {
    /// Its number.
    pub const fn number(self) -> u8 {
        match self {
            Self::Icmp => 1,
            Self::Tcp => 6,
            Self::Udp => 17,
            Self::IcmpV6 => 58,
        }
    }
}

impl fmt::Display for Protocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Tcp => "tcp",
            Self::Udp => "udp",
            Self::Icmp => "icmp",
            Self::IcmpV6 => "icmpv6",
        })
    }
}

/// A host's name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Domain(pub String);

impl FromStr for Domain {
    type Err = &'static str;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text.starts_with("*.") {
            return Err("stands for names that cannot be listed");
        }
        is_host(text)
            .then(|| Self(text.to_owned()))
            .ok_or("is no host's name")
    }
}

impl fmt::Display for Domain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

from_text!(Domain, "a host's name, for example \"video.example.net\"");

/// A user of this machine, by name or number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Account {
    name: String,
    uid: Option<u32>,
}

impl FromStr for Account {
    type Err = &'static str;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        (!text.is_empty())
            .then(|| Self {
                name: text.to_owned(),
                uid: text.parse().ok(),
            })
            .ok_or("is no user")
    }
}

impl fmt::Display for Account {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.name.fmt(f)
    }
}

from_text!(Account, "a user's name or number");

impl Account {
    /// Its number; `None` if a name was not looked up, or this machine has no such user.
    pub const fn uid(&self) -> Option<u32> {
        self.uid
    }

    /// Looks up its name. The number stays, so that no later lookup can fail. Returns whether this
    /// machine has such a user.
    pub fn look_up(&mut self) -> bool {
        let named = || User::from_name(&self.name).ok().flatten();
        self.uid = self.uid.or_else(|| named().map(|user| user.uid.as_raw()));
        self.uid.is_some()
    }

    /// The expected values, and the nearest name.
    pub fn help(&self) -> Vec<String> {
        let users = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
        let names = users.lines().filter_map(|line| line.split(':').next());
        let expected = "expected the name or number of a user of this machine".to_owned();
        let nearest = choice(&self.name, &names.collect::<Vec<_>>());
        let nearest = nearest.into_iter().skip(1);
        std::iter::once(expected).chain(nearest).collect()
    }
}

/// A firewall mark, and the bits of it that count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mark {
    pub value: u32,
    pub mask: u32,
}

impl FromStr for Mark {
    type Err = &'static str;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let number = |text: &str| match text.strip_prefix("0x") {
            Some(digits) => u32::from_str_radix(digits, 16).ok(),
            None => text.parse().ok(),
        };
        let (value, mask) = match text.split_once('/') {
            Some((value, mask)) => (number(value), number(mask)),
            None => (number(text), Some(u32::MAX)),
        };
        match (value, mask) {
            (Some(value), Some(mask)) if mask != 0 && value & !mask == 0 => {
                Ok(Self { value, mask })
            }
            (Some(_), Some(0)) => Err("has no bits that count"),
            (Some(_), Some(_)) => Err("has bits beside its mask"),
            _ => Err("is no mark"),
        }
    }
}

impl fmt::Display for Mark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.mask {
            u32::MAX => write!(f, "{}", self.value),
            mask => write!(f, "{:#x}/{mask:#x}", self.value),
        }
    }
}

from_text!(
    Mark,
    "a number from 0 to 4294967295, or value and mask, for example \"0x10/0xf0\""
);

#[cfg(test)]
mod tests {
    use super::{Account, Mark};

    #[test]
    fn marks_have_masks() {
        let mark = |text: &str| text.parse::<Mark>();
        assert_eq!(
            mark("7"),
            Ok(Mark {
                value: 7,
                mask: u32::MAX
            })
        );
        assert_eq!(
            mark("0x10/0xf0"),
            Ok(Mark {
                value: 16,
                mask: 240
            })
        );
        for wrong in ["", "x", "-1", "0x1ffffffff", "1/0", "0x100/0xf0", "1/"] {
            assert!(mark(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn users_are_found_by_name_and_number() {
        let uid = |text: &str| {
            let mut account: Account = text.parse().expect("a text");
            account.look_up();
            account.uid()
        };
        assert_eq!(uid("root"), Some(0));
        assert_eq!(uid("4711"), Some(4_711));
        assert_eq!(uid("no such user"), None);
    }
}
