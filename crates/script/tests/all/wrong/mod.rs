//! TCPs that are wrong in one way each: our endpoint with a filter that changes the packets that
//! it receives or sends. A script that passes on the wrong TCP that it names cannot fail.

use anabranch_core::units::Duration;
use anabranch_script::{Answer, EndpointTarget, Request, Target};
use anabranch_wire::{Checksum, Flags, Ports, Protocol, Version, decode_ip, iter_options};

/// Octets of an IPv4 header without options. Wrong TCPs use only IPv4.
const TCP: usize = 20;
/// Offset of the payload in a packet without TCP options.
const OPTIONS: usize = TCP + 20;

/// A way in which a TCP is wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum How {
    /// It accepts damaged packets.
    VerifiesNoChecksum,
    /// It accepts a fragment as a whole packet.
    TakesFragments,
    /// It reads beyond the end of a packet.
    TakesShortPackets,
    /// It treats any header as one without options.
    IgnoresDataOffset,
    /// It skips malformed options.
    SkipsBadOptions,
    /// It neither detects losses by SACK blocks nor verifies the blocks.
    IgnoresSack,
    /// Any reset ends a connection (RFC 5961 §1).
    BelievesResets,
    /// No reset ends a connection.
    IgnoresResets,
    /// Any SYN ends a connection.
    ResetsOnSyn,
    /// It treats any acknowledgment as one of all data.
    BelievesAcks,
    /// It treats the first acknowledgment after a retransmission as one of all data.
    TakesTimeoutsForSpurious,
    /// It attributes every answer to its SYN, and every acknowledgment of its SYN-ACK, to the first
    /// copy: its retransmission was then spurious.
    TakesSynsForSpurious,
    /// It accepts octets as the next ones, whatever their numbers.
    IgnoresNumbers,
    /// It accepts any timestamp.
    ChecksNoTimestamps,
    /// It accepts segments without ACK.
    NeedsNoAck,
    /// It ignores a FIN.
    IgnoresFin,
    /// It ignores the peer's window.
    IgnoresWindow,
    /// It always announces the same window.
    OffersAFixedWindow,
    /// It never sends a reset.
    SendsNoReset,
    /// It sends no segment without payload, SYN, FIN or RST.
    SendsNoAcknowledgment,
    /// It never retransmits.
    NeverRetransmits,
    /// It ignores an acknowledgment that a later one has overtaken.
    IgnoresLateAcknowledgments,
}

impl How {
    pub const ALL: [(&'static str, Self); 22] = [
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
        (
            "ignores-late-acknowledgments",
            Self::IgnoresLateAcknowledgments,
        ),
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
    /// The next number that the endpoint expects, and one past all data that it has sent.
    expected: u32,
    next: Option<u32>,
    /// It has retransmitted since it last received a packet.
    again: bool,
    /// The latest timestamp received from the peer.
    recent: Option<u32>,
    /// The timestamp of its first SYN.
    first: Option<u32>,
    /// The highest number acknowledged.
    acknowledged: Option<u32>,
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
            acknowledged: None,
        }
    }

    /// The packet that the endpoint receives; `None` if it receives none.
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
            How::IgnoresLateAcknowledgments if flags.any(Flags::ACK) => {
                let ack = get(&packet, 8);
                let highest = self.acknowledged.get_or_insert(ack);
                if ack.wrapping_sub(*highest).cast_signed() < 0 {
                    return None;
                }
                *highest = ack;
                return Some(packet);
            }
            How::IgnoresWindow => packet[TCP + 14..TCP + 16].fill(0xff),
            _ => return Some(packet),
        }
        mend(&mut packet);
        Some(packet)
    }

    /// Replaces malformed options, or SACK, by padding.
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

    /// The packet that is sent in place of the endpoint's; `None` if it is dropped.
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

/// The offset of the timestamp option.
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

/// Recomputes the checksums.
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
    fn sysctl(&mut self, name: &str, value: &str) -> Result<(), String> {
        self.inner.sysctl(name, value)
    }
    fn has(&self, name: &str) -> bool {
        self.inner.has(name)
    }
    fn forget_cookies(&mut self) {
        self.inner.forget_cookies();
    }
    fn connection(&self) -> u64 {
        self.inner.connection()
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
    /// Counters inside would reveal the changes made outside. A wrong TCP must be detected by its
    /// behaviour.
    fn shows(&self, name: &str) -> bool {
        !name.starts_with("refused") && !name.starts_with("discarded") && name != "malformed"
    }
}
