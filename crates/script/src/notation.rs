//! Segments in the notation of scripts.

use std::fmt;

use anabranch_wire::{Flags, accecn::Counter};

use crate::syntax::{Control, Ecn, Header, Item, Options, Value};

/// Letters of the control bits, in their order in the notation.
pub(crate) const FLAGS: [(char, Flags); 9] = [
    ('S', Flags::SYN),
    ('F', Flags::FIN),
    ('R', Flags::RST),
    ('P', Flags::PSH),
    ('U', Flags::URG),
    ('E', Flags::ECE),
    ('W', Flags::CWR),
    ('A', Flags::AE),
    ('.', Flags::ACK),
];

impl fmt::Display for Header {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.ecn {
            None | Some(Ecn::NotEct) => {}
            Some(Ecn::Ect0) => f.write_str("[ect0] ")?,
            Some(Ecn::Ect1) => f.write_str("[ect1] ")?,
            Some(Ecn::Ce) => f.write_str("[ce] ")?,
        }
        f.write_str(&letters(self))?;
        let end = self.seq.wrapping_add(self.len);
        write!(f, " {}:{end}({})", self.seq, self.len)?;
        if let Some(ack) = self.ack {
            write!(f, " ack {ack}")?;
        }
        if let Some(window) = self.window {
            write!(f, " win {window}")?;
        }
        match self.options.to_string() {
            options if options.is_empty() => Ok(()),
            options => write!(f, " {options}"),
        }
    }
}

/// The flags of a segment; `-` for none.
pub(crate) fn letters(header: &Header) -> String {
    if header.flags == Flags::NONE {
        return "-".to_owned();
    }
    let set = FLAGS
        .into_iter()
        .filter(|(_, flag)| header.flags.any(*flag));
    set.map(|(letter, _)| letter).collect()
}

impl fmt::Display for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Any => f.write_str("<...>"),
            Self::List(items) if items.is_empty() => Ok(()),
            Self::List(items) => {
                for (place, item) in items.iter().enumerate() {
                    write!(f, "{}{item}", if place == 0 { "<" } else { "," })?;
                }
                f.write_str(">")
            }
        }
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => write!(f, "{number}"),
            Self::Name(name) => f.write_str(name),
            Self::Joined(operator, pair) => {
                write!(f, "({} {} {})", pair.0, operator.sign(), pair.1)
            }
        }
    }
}

impl fmt::Display for Control {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unread(octets) => write!(f, "TCP_CM_INQ {octets}"),
            Self::ZeroCopy {
                first,
                last,
                was_copied,
            } => {
                let code = u8::from(*was_copied);
                write!(f, "SO_EE_ORIGIN_ZEROCOPY {first} to {last} code {code}")
            }
        }
    }
}

impl Ecn {
    /// Its name in scripts.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::NotEct => "noecn",
            Self::Ect0 => "ect0",
            Self::Ect1 => "ect1",
            Self::Ce => "ce",
        }
    }
}

impl fmt::Display for Item {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nop => f.write_str("nop"),
            Self::End => f.write_str("eol"),
            Self::Mss(mss) => write!(f, "mss {mss}"),
            Self::WindowScale(shift) => write!(f, "wscale {shift}"),
            Self::SackPermitted => f.write_str("sackOK"),
            Self::Sack(blocks) => {
                f.write_str("sack")?;
                blocks
                    .iter()
                    .try_for_each(|block| write!(f, " {}:{}", block.left, block.right))
            }
            Self::Timestamps(value, echo) => write!(f, "TS val {value} ecr {echo}"),
            Self::AccEcn(accecn) => {
                f.write_str("ECN")?;
                accecn
                    .order()
                    .counters()
                    .into_iter()
                    .try_for_each(|counter| {
                        let name = match counter {
                            Counter::Ect0 => "e0b",
                            Counter::Ce => "ceb",
                            Counter::Ect1 => "e1b",
                        };
                        match accecn.field(counter) {
                            Some(octets) => write!(f, " {name} {octets}"),
                            None => Ok(()),
                        }
                    })
            }
            Self::FastOpen {
                is_experimental,
                cookie,
            } => {
                f.write_str(if *is_experimental { "FOEXP" } else { "FO" })?;
                if !cookie.is_empty() {
                    f.write_str(" ")?;
                }
                cookie.iter().try_for_each(|octet| write!(f, "{octet:02x}"))
            }
            Self::Raw(octets) => {
                f.write_str("raw ")?;
                octets.iter().try_for_each(|octet| write!(f, "{octet:02x}"))
            }
        }
    }
}
