//! Parses packets.

use anabranch_wire::{
    AccEcn, Flags, SackBlock,
    accecn::{Counter, Order},
};

use super::{Parser, unsupported};
use crate::{
    error::{Error, choices},
    lexer::Token,
    notation::FLAGS,
    syntax::{Ecn, Fault, Header, Icmp, Item, Options},
};

const BRACKETS: [&str; 10] = [
    "noecn",
    "ect0",
    "ect1",
    "ce",
    "bad-checksum",
    "bad-ip-checksum",
    "cut",
    "fragment",
    "offset",
    "garbage",
];
const ITEMS: [&str; 11] = [
    "nop", "eol", "mss", "wscale", "sackOK", "sack", "TS", "ECN", "FO", "FOEXP", "raw",
];

/// Codes of ICMP "destination unreachable" (RFC 792, RFC 1122 §3.2.2.1).
const CODES: [(&str, u8); 9] = [
    ("net_unreachable", 0),
    ("host_unreachable", 1),
    ("protocol_unreachable", 2),
    ("port_unreachable", 3),
    ("frag_needed", FRAGMENTATION_NEEDED),
    ("source_route_failed", 5),
    ("net_unknown", 6),
    ("host_unknown", 7),
    // Defined on packetdrill's command line by the program that runs its scripts over IPv4.
    ("CODE", 1),
];
const FRAGMENTATION_NEEDED: u8 = 4;

/// The cookie of the peer 192.0.2.1 at the host 192.168.0.1 with the secret that packetdrill's init
/// scripts set. The program that runs the scripts defines it as `TFO_COOKIE`.
const COOKIE: [u8; 8] = [0x30, 0x21, 0xb9, 0xd8, 0x89, 0x01, 0x7e, 0xeb];

impl Parser<'_> {
    /// Parses a packet, after `<` or `>`.
    pub(super) fn packet(&mut self, injected: bool) -> Result<Header, Error> {
        let (ecn, faults) = if self.take_sign("[") {
            self.brackets(injected)?
        } else {
            (None, Vec::new())
        };
        let flags = self.flags()?;
        let at = self.at();
        let seq = self.number32("a sequence number")?;
        self.sign(":")?;
        let end = self.number32("the sequence number after the last octet")?;
        self.sign("(")?;
        let len = self.number("the length of the payload", 65_535)?;
        let len = u32::try_from(len).expect("bounded");
        self.sign(")")?;
        if end.wrapping_sub(seq) != len {
            let message = format!(
                "{seq}:{end} spans {} octets, not {len}",
                end.wrapping_sub(seq)
            );
            return Err(self.error_at(at, message));
        }
        let ack = if self.take_word("ack") {
            Some(self.number32("an acknowledgment number")?)
        } else {
            None
        };
        if flags.any(Flags::ACK) && ack.is_none() && !flags.any(Flags::RST) {
            return Err(self.expected("`ack` and its number, since the flags have `.`"));
        }
        let window = if self.take_word("win") {
            Some(self.number16("a window")?)
        } else {
            None
        };
        if injected && window.is_none() {
            return Err(self.expected("`win` and a window, since this packet is made here"));
        }
        if self.is_word("urg") {
            let message = "packetdrill's urgent pointer (`urg`) is not supported: \
                           expected options or the next event";
            return Err(self.unsupported(self.at(), message.to_owned()));
        }
        let options = if self.take_sign("<") {
            self.options()?
        } else {
            Options::List(Vec::new())
        };
        if injected && options == Options::Any {
            return Err(self
                .error("`<...>` says nothing about a packet that is made here: list its options"));
        }
        Ok(Header {
            flags,
            seq,
            len,
            ack,
            window,
            options,
            ecn,
            faults,
        })
    }

    /// Parses an ICMP error, after `icmp`.
    pub(super) fn icmp(&mut self) -> Result<Icmp, Error> {
        let at = self.at();
        let kind = self.word("`unreachable`")?;
        if kind != "unreachable" {
            let message = format!(
                "packetdrill's `icmp {kind}` is not supported: expected `icmp unreachable`"
            );
            return Err(self.unsupported(at, message));
        }
        let at = self.at();
        let mut code = 1;
        if let Token::Word(name) = self.peek().clone() {
            self.advance();
            let found = CODES.iter().find(|(known, _)| *known == name);
            code = found.map(|(_, code)| *code).ok_or_else(|| {
                let known = CODES.map(|(known, _)| known);
                self.error_at(
                    at,
                    format!("there is no code `{name}`; {}", choices(&name, &known)),
                )
            })?;
        }
        let mtu = if self.take_word("mtu") {
            Some(self.number16("an MTU")?)
        } else {
            None
        };
        if mtu.is_some() != (code == FRAGMENTATION_NEEDED) {
            return Err(self.error_at(at, "`frag_needed` has an `mtu`, and no other code has"));
        }
        let mut seq = None;
        if self.take_sign("[") {
            seq = Some(self.number32("a sequence number")?);
            self.sign(":")?;
            self.number32("the sequence number after the last octet")?;
            self.sign("(")?;
            self.number32("the length of the payload")?;
            self.sign(")")?;
            self.sign("]")?;
        }
        Ok(Icmp { code, mtu, seq })
    }

    fn brackets(&mut self, injected: bool) -> Result<(Option<Ecn>, Vec<Fault>), Error> {
        let (mut ecn, mut faults) = (None, Vec::new());
        loop {
            let at = self.at();
            let name = self.word("the text in brackets")?;
            let fault = match name.as_str() {
                "noecn" | "ect0" | "ect1" | "ce" => {
                    ecn = Some(match name.as_str() {
                        "noecn" => Ecn::NotEct,
                        "ect0" => Ecn::Ect0,
                        "ect1" => Ecn::Ect1,
                        _ => Ecn::Ce,
                    });
                    None
                }
                "bad-checksum" => Some(Fault::BadChecksum),
                "bad-ip-checksum" => Some(Fault::BadIpChecksum),
                "cut" => Some(Fault::Cut(self.number32("how many octets are missing")?)),
                "fragment" => Some(Fault::Fragment),
                "offset" => {
                    let words = self.number("words of the TCP header", 15)?;
                    Some(Fault::Offset(u8::try_from(words).expect("bounded")))
                }
                "garbage" => Some(Fault::Garbage),
                _ => {
                    let message = format!("`[{name}]` is not known; {}", choices(&name, &BRACKETS));
                    return Err(self.error_at(at, message));
                }
            };
            if let Some(fault) = fault {
                if !injected {
                    let message =
                        format!("`[{name}]` describes a sent packet (`<`), not an expected one");
                    return Err(self.error_at(at, message));
                }
                faults.push(fault);
            }
            if !self.take_sign(",") {
                break;
            }
        }
        self.sign("]")?;
        Ok((ecn, faults))
    }

    /// Parses flags: letters, `.` for ACK, `-` for none.
    fn flags(&mut self) -> Result<Flags, Error> {
        let at = self.at();
        if self.take_sign("-") {
            return Ok(Flags::NONE);
        }
        let text = match self.peek() {
            Token::Word(text) => text.clone(),
            Token::Sign(".") => String::new(),
            Token::Number(text) if ace(text).is_some() => text.clone(),
            Token::Number(text) => {
                let known: String = FLAGS.iter().map(|(letter, _)| *letter).collect();
                let message = format!(
                    "packetdrill's flags as numbers (`{text}`) are not supported: \
                     expected some of {known}"
                );
                return Err(self.unsupported(at, message));
            }
            _ => return Err(self.expected("flags, such as `S`, `P.` or `.`")),
        };
        if unsupported::PACKETS.contains(&text.as_str()) {
            let message = format!(
                "packetdrill's `{text}` packets are not supported: \
                 expected a TCP segment, such as `. 1:1(0) ack 1`"
            );
            return Err(self.unsupported(at, message));
        }
        if !text.is_empty() {
            self.advance();
        }
        let mut flags = if !text.ends_with('.') && self.take_sign(".") {
            Flags::ACK
        } else {
            Flags::NONE
        };
        for letter in text.chars() {
            if let Some(ace) = ace_bits(letter) {
                flags |= ace;
                continue;
            }
            let Some((_, flag)) = FLAGS.into_iter().find(|(known, _)| *known == letter) else {
                let known: String = FLAGS.iter().map(|(letter, _)| *letter).collect();
                let message = format!("`{letter}` is no flag: expected some of {known}");
                return Err(self.error_at(at, message));
            };
            flags |= flag;
        }
        Ok(flags)
    }

    /// Parses options, after `<`.
    fn options(&mut self) -> Result<Options, Error> {
        if self.take_sign("...") {
            self.sign(">")?;
            return Ok(Options::Any);
        }
        let mut items = Vec::new();
        while !self.take_sign(">") {
            if !items.is_empty() {
                self.sign(",")?;
            }
            items.push(self.item()?);
        }
        Ok(Options::List(items))
    }

    fn item(&mut self) -> Result<Item, Error> {
        let at = self.at();
        let name = self.word("an option, such as `mss 1460`")?;
        Ok(match name.as_str() {
            "nop" => Item::Nop,
            "eol" => Item::End,
            "mss" => Item::Mss(self.number16("a segment size")?),
            "wscale" => Item::WindowScale(self.number8("a shift")?),
            "sackOK" => Item::SackPermitted,
            "sack" => {
                let mut blocks = Vec::new();
                while matches!(self.peek(), Token::Number(_)) {
                    let left = self.number32("the left edge")?;
                    self.sign(":")?;
                    let right = self.number32("the right edge")?;
                    blocks.push(SackBlock { left, right });
                }
                if !(1..=4).contains(&blocks.len()) {
                    return Err(
                        self.error_at(at, "expected one to four blocks LEFT:RIGHT after `sack`")
                    );
                }
                Item::Sack(blocks)
            }
            "TS" => {
                if !self.take_word("val") {
                    return Err(self.expected("`val`"));
                }
                let value = self.number32("a timestamp")?;
                if !self.take_word("ecr") {
                    return Err(self.expected("`ecr`"));
                }
                Item::Timestamps(value, self.number32("an echoed timestamp")?)
            }
            "ECN" => self.accecn()?,
            "FO" | "FOEXP" => Item::FastOpen {
                is_experimental: name == "FOEXP",
                cookie: if self.is_sign(",") || self.is_sign(">") {
                    Vec::new()
                } else if self.take_word("TFO_COOKIE") {
                    COOKIE.to_vec()
                } else {
                    self.octets()?
                },
            },
            "raw" => Item::Raw(self.octets()?),
            _ => {
                let known = choices(&name, &ITEMS);
                return Err(if unsupported::ITEMS.contains(&name.as_str()) {
                    let message = format!(
                        "packetdrill's option `{name}` is not supported by name (`raw HEX` writes \
                         its octets); {known}"
                    );
                    self.unsupported(at, message)
                } else {
                    self.error_at(at, format!("there is no option `{name}`; {known}"))
                });
            }
        })
    }

    /// Parses octets in hexadecimal.
    fn octets(&mut self) -> Result<Vec<u8>, Error> {
        let (at, text) = match self.peek() {
            Token::Word(text) | Token::Number(text) => (self.at(), text.clone()),
            _ => return Err(self.expected("octets in hexadecimal")),
        };
        self.advance();
        let octets: Option<Vec<u8>> = text
            .as_bytes()
            .chunks(2)
            .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok())
            .collect();
        octets
            .filter(|_| text.len().is_multiple_of(2))
            .ok_or_else(|| {
                let message = format!("`{text}`: expected octets in hexadecimal, two digits each");
                self.error_at(at, message)
            })
    }

    /// Parses the AccECN option, after `ECN`: counters by name, in either order.
    fn accecn(&mut self) -> Result<Item, Error> {
        let order = if self.is_word("e1b") {
            Order::Ect1First
        } else {
            Order::Ect0First
        };
        let mut fields = Vec::new();
        for counter in order.counters() {
            let name = match counter {
                Counter::Ect0 => "e0b",
                Counter::Ce => "ceb",
                Counter::Ect1 => "e1b",
            };
            if !self.take_word(name) {
                break;
            }
            let most = u64::from(AccEcn::MASK);
            let octets = self.number("a count of octets", most)?;
            fields.push(u32::try_from(octets).expect("bounded"));
        }
        if !self.is_sign(",") && !self.is_sign(">") {
            return Err(self.expected("`e0b N ceb N e1b N` or the reverse, or less of it"));
        }
        Ok(Item::AccEcn(AccEcn::new(order, &fields)))
    }
}

/// The bits of the ACE field (RFC 9768 §3.2.2) that a digit sets.
fn ace_bits(digit: char) -> Option<Flags> {
    let number = digit.to_digit(8)?;
    let bits = [(4, Flags::AE), (2, Flags::CWR), (1, Flags::ECE)];
    let set = bits.into_iter().filter(|(bit, _)| number & bit != 0);
    Some(set.fold(Flags::NONE, |flags, (_, flag)| flags | flag))
}

/// The digit in the flags `5.` or `.5`.
fn ace(text: &str) -> Option<Flags> {
    let digit = text.strip_prefix('.').or_else(|| text.strip_suffix('.'))?;
    let mut digits = digit.chars();
    digits
        .next()
        .and_then(ace_bits)
        .filter(|_| digits.next().is_none())
}
