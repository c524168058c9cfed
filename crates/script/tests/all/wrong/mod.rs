//! TCPs that are wrong in one way each: our endpoint behind something that changes what reaches it, or
//! what it sends. A script that passes on the one it names cannot fail.

use anabranch_core::units::Duration;
use anabranch_script::{Answer, EndpointTarget, Request, Target};
use anabranch_wire::{Checksum, Flags, Ports, Protocol, Version, decode_ip, iter_options};

/// Octets of an IPv4 header without options; the wrong ones speak nothing else.
const TCP: usize = 20;
/// Where the payload of a packet without TCP options begins.
const OPTIONS: usize = TCP + 20;

/// How a TCP is wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum How {
    /// It takes what was damaged.
    VerifiesNoChecksum,
    /// It takes a part of a packet for all of it.
    TakesFragments,
    /// It reads on behind the end of a packet.
    TakesShortPackets,
    /// It takes any header for one without options.
    IgnoresDataOffset,
    /// It skips options that cannot be.
    SkipsBadOptions,
    /// It looks for no losses in SACK blocks, and finds nothing wrong with them.
    IgnoresSack,
    /// Any reset ends a connection (RFC 5961 §1).
    BelievesResets,
    /// None does.
    IgnoresResets,
    /// Any SYN ends one.
    ResetsOnSyn,
    /// Whatever is acknowledged, it takes all for acknowledged.
    BelievesAcks,
    /// The first acknowledgment after a retransmission acknowledges all.
    TakesTimeoutsForSpurious,
    /// It takes every answer to its SYN, and every acknowledgment of its answer, for one of the first: what it
    /// retransmitted was not lost.
    TakesSynsForSpurious,
    /// It takes octets for the next ones, wherever they belong.
    IgnoresNumbers,
    /// Every timestamp is new enough.
    ChecksNoTimestamps,
    /// What has no acknowledgment has one all the same.
    NeedsNoAck,
    /// A FIN means nothing.
    IgnoresFin,
    /// The peer has always room.
    IgnoresWindow,
    /// It has always room itself, or says so.
    OffersAFixedWindow,
    /// It answers nothing by a reset.
    SendsNoReset,
    /// It sends no segment without payload, SYN, FIN or RST.
    SendsNoAcknowledgment,
    /// Whatever is lost stays lost.
    NeverRetransmits,
}

impl How {
    pub const ALL: [(&'static str, Self); 21] = [
        ("verifies-no-checksum", Self::VerifiesNoChecksum),
        ("takes-fragments", Self::TakesFragments),
        ("takes-short-packets", Self::TakesShortPackets),
        ("ignores-data-offset", Self::IgnoresDataOffset),
        ("skips-bad-options", Self::SkipsBadOptions),
        ("ignores-sack", Self::IgnoresSack),
        ("believes-resets", Self::BelievesResets),
        ("ignores-resets", Self::IgnoresResets),
        ("resets-on-syn", Self::ResetsOnSyn),
        ("believes-acks", Self::BelievesAcks),
        (
            "takes-timeouts-for-spurious",
            Self::TakesTimeoutsForSpurious,
        ),
        ("takes-syns-for-spurious", Self::TakesSynsForSpurious),
        ("ignores-numbers", Self::IgnoresNumbers),
        ("checks-no-timestamps", Self::ChecksNoTimestamps),
        ("needs-no-ack", Self::NeedsNoAck),
        ("ignores-fin", Self::IgnoresFin),
        ("ignores-window", Self::IgnoresWindow),
        ("offers-a-fixed-window", Self::OffersAFixedWindow),
        ("sends-no-reset", Self::SendsNoReset),
        ("sends-no-acknowledgment", Self::SendsNoAcknowledgment),
        ("never-retransmits", Self::NeverRetransmits),
    ];

    pub fn named(name: &str) -> Option<Self> {
        let found = Self::ALL.into_iter().find(|(known, _)| *known == name)?;
        Some(found.1)
    }
}

/// See the module.
#[derive(Debug)]
pub struct Wrong {
    inner: EndpointTarget,
    how: How,
    /// The next number that the endpoint expects, and the one behind all that it has sent.
    expected: u32,
    next: Option<u32>,
    /// It has sent something again since it last heard.
    again: bool,
    /// Its newest timestamp from the peer.
    recent: Option<u32>,
    /// The timestamp of its first SYN.
    first: Option<u32>,
}

impl Wrong {
    pub fn new(inner: EndpointTarget, how: How) -> Self {
        Self {
            inner,
            how,
            expected: 0,
            next: None,
            again: false,
            recent: None,
            first: None,
        }
    }

    /// What reaches the endpoint; `None` if nothing does.
    fn received(&mut self, mut packet: Vec<u8>) -> Option<Vec<u8>> {
        if packet.len() < OPTIONS && self.how != How::TakesShortPackets {
            return Some(packet);
        }
        if self.how == How::TakesShortPackets {
            if packet.len() >= 4 {
                let len = usize::from(u16::from_be_bytes([packet[2], packet[3]]));
                packet.resize(len.max(packet.len()), 0);
                mend(&mut packet);
            }
            return Some(packet);
        }
        let flags = flags(&packet);
        match self.how {
            How::VerifiesNoChecksum => {}
            How::TakesFragments => packet[6] &= !0x20,
            How::IgnoresDataOffset => packet[TCP + 12] = 5 << 4 | packet[TCP + 12] & 1,
            How::SkipsBadOptions | How::IgnoresSack => self.empty_options(&mut packet),
            How::IgnoresResets if flags.any(Flags::RST) => return None,
            How::BelievesResets if flags.any(Flags::RST) => put(&mut packet, 4, self.expected),
            How::ResetsOnSyn if flags.any(Flags::SYN) && self.expected != 0 => {
                packet[TCP + 13] = 4;
                put(&mut packet, 4, self.expected);
            }
            How::TakesTimeoutsForSpurious if self.again => {
                self.again = false;
                put(&mut packet, 8, self.next?);
            }
            How::BelievesAcks if flags.any(Flags::ACK) => {
                if let Some(next) = self.next {
                    put(&mut packet, 8, next);
                }
            }
            How::IgnoresNumbers if !flags.any(Flags::SYN) => put(&mut packet, 4, self.expected),
            How::ChecksNoTimestamps => self.renew_timestamp(&mut packet),
            How::TakesSynsForSpurious => {
                if let (Some(at), Some(first)) = (timestamps(&packet), self.first) {
                    put(&mut packet, at + 6 - TCP, first);
                }
            }
            How::NeedsNoAck if !flags.any(Flags::SYN | Flags::ACK) => {
                packet[TCP + 13] |= 16;
                put(&mut packet, 8, self.next?);
            }
            How::IgnoresFin => packet[TCP + 13] &= !1,
            How::IgnoresWindow => packet[TCP + 14..TCP + 16].fill(0xff),
            _ => return Some(packet),
        }
        mend(&mut packet);
        Some(packet)
    }

    /// Options that cannot be, or SACK, give way to padding.
    fn empty_options(&self, packet: &mut [u8]) {
        let end = TCP + usize::from(packet[TCP + 12] >> 4) * 4;
        let Some(options) = packet.get(OPTIONS..end) else {
            return;
        };
        let bad = iter_options(options).any(|option| option.is_err());
        let sack = options
            .windows(2)
            .any(|pair| pair[0] == 5 && pair[1] % 8 == 2);
        if bad && self.how == How::SkipsBadOptions || sack && self.how == How::IgnoresSack {
            packet[OPTIONS..end].fill(1);
        }
    }

    fn renew_timestamp(&mut self, packet: &mut [u8]) {
        let Some(at) = timestamps(packet) else {
            return;
        };
        let value = u32::from_be_bytes(std::array::from_fn(|i| packet[at + 2 + i]));
        let newest = self.recent.map_or(value, |recent| recent.max(value));
        self.recent = Some(newest);
        put(packet, at + 2 - TCP, newest);
    }

    /// What the endpoint sends; `None` if it does not.
    fn sent(&mut self, mut packet: Vec<u8>) -> Option<Vec<u8>> {
        let flags = flags(&packet);
        let header = TCP + usize::from(packet[TCP + 12] >> 4) * 4;
        let payload = packet.len() - header;
        let start = get(&packet, 4);
        let taken =
            payload + usize::from(flags.any(Flags::SYN)) + usize::from(flags.any(Flags::FIN));
        let behind = start.wrapping_add(u32::try_from(taken).expect("a packet"));
        let new = self
            .next
            .is_none_or(|next| behind.wrapping_sub(next).cast_signed() > 0);
        let again = taken > 0 && !new;
        if !flags.any(Flags::RST) {
            if flags.any(Flags::ACK) {
                self.expected = get(&packet, 8);
            }
            if new {
                self.next = Some(behind);
            }
        }
        self.again |= again;
        if flags.any(Flags::SYN)
            && let Some(at) = timestamps(&packet)
        {
            self.first.get_or_insert(get(&packet, at + 2 - TCP));
        }
        match self.how {
            How::SendsNoReset if flags.any(Flags::RST) => return None,
            How::SendsNoAcknowledgment if taken == 0 && !flags.any(Flags::RST) => return None,
            How::NeverRetransmits if again => return None,
            How::OffersAFixedWindow if !flags.any(Flags::RST) => {
                packet[TCP + 14..TCP + 16].copy_from_slice(&1000_u16.to_be_bytes());
                mend(&mut packet);
            }
            _ => {}
        }
        Some(packet)
    }
}

/// Where the option of timestamps stands.
fn timestamps(packet: &[u8]) -> Option<usize> {
    let end = TCP + usize::from(packet[TCP + 12] >> 4) * 4;
    (OPTIONS..end.saturating_sub(9)).find(|&at| packet[at..at + 2] == [8, 10])
}

fn flags(packet: &[u8]) -> Flags {
    Flags(u16::from(packet[TCP + 13]))
}

fn get(packet: &[u8], at: usize) -> u32 {
    u32::from_be_bytes(std::array::from_fn(|i| packet[TCP + at + i]))
}

fn put(packet: &mut [u8], at: usize, number: u32) {
    packet[TCP + at..TCP + at + 4].copy_from_slice(&number.to_be_bytes());
}

/// Makes the checksums right.
fn mend(packet: &mut [u8]) {
    packet[10..12].fill(0);
    let sum = Checksum::of(&packet[..TCP]);
    packet[10..12].copy_from_slice(&sum.finish().to_be_bytes());
    let Ok((ip, Protocol::Tcp, _)) = decode_ip(packet) else {
        return;
    };
    packet[TCP + 16..TCP + 18].fill(0);
    let mut sum = ip.pseudo_header(Protocol::Tcp, packet.len() - TCP);
    sum.add(&packet[TCP..]);
    packet[TCP + 16..TCP + 18].copy_from_slice(&sum.finish().to_be_bytes());
}

impl Target for Wrong {
    fn option(&mut self, name: &str, value: &str) -> Result<(), String> {
        self.inner.option(name, value)
    }
    fn sysctl(&mut self, name: &str, value: i64) -> Result<(), String> {
        self.inner.sysctl(name, value)
    }
    fn call(&mut self, now: Duration, request: Request<'_>) -> Result<Answer, String> {
        self.inner.call(now, request)
    }
    fn towards(&self) -> (Version, Ports) {
        self.inner.towards()
    }
    fn inject(&mut self, now: Duration, packet: &[u8]) {
        if let Some(packet) = self.received(packet.to_vec()) {
            self.inner.inject(now, &packet);
        }
    }
    fn advance(&mut self, until: Duration) -> Result<(), String> {
        self.inner.advance(until)
    }
    fn take_sent(&mut self) -> Option<(Duration, Vec<u8>)> {
        while let Some((at, packet)) = self.inner.take_sent() {
            if let Some(packet) = self.sent(packet) {
                return Some((at, packet));
            }
        }
        None
    }
    fn figure(&self, name: &str) -> Option<i64> {
        self.inner.figure(name)
    }
    fn figures(&self) -> &'static [&'static str] {
        self.inner.figures()
    }
    /// What is counted inside would give away what was changed outside; a wrong TCP is found out by
    /// what it does.
    fn shows(&self, name: &str) -> bool {
        !name.starts_with("refused") && !name.starts_with("discarded") && name != "malformed"
    }
}
