//! LACPDUs as octets (IEEE 802.1AX-2014 §6.4.2.3).
//!
//! A PDU has 110 octets: subtype, version, and four TLVs in a fixed order: actor, partner,
//! collector, terminator. An Ethernet frame adds 14 octets before it, and the checksum after it.
//!
//! Decoding validates its input: a PDU that is too short, or has another subtype, type or length
//! than the standard specifies, is rejected. Reserved octets are sent as zero and ignored on
//! receipt (§6.4.2.3 a). Octets after the PDU are padding.

/// Octets of a PDU.
pub const OCTETS: usize = 110;
/// Size as links count packets: without Ethernet's overhead.
pub const SIZE: u32 = 110;
/// Octets of the frame around it, without the checksum.
pub const FRAME_OCTETS: usize = 14 + OCTETS;
/// Destination address of slow protocols (§6.4.2.1, IEEE 802.3 annex 57A).
pub const SLOW_PROTOCOLS_ADDRESS: [u8; 6] = [0x01, 0x80, 0xc2, 0x00, 0x00, 0x02];
/// `EtherType` of slow protocols.
pub const SLOW_PROTOCOLS_TYPE: u16 = 0x8809;

const SUBTYPE: u8 = 1;
const VERSION: u8 = 1;
/// Offsets of the TLVs, and their first octets: type and length.
const ACTOR: (usize, [u8; 2]) = (2, [1, 20]);
const PARTNER: (usize, [u8; 2]) = (22, [2, 20]);
const COLLECTOR: (usize, [u8; 2]) = (42, [3, 16]);
const TERMINATOR: (usize, [u8; 2]) = (58, [0, 0]);

/// State of a port as its PDUs carry it (§6.4.2.3 m).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct State(pub u8);

impl State {
    /// `LACP_Activity`: it sends PDUs without being asked.
    pub const ACTIVITY: Self = Self(1);
    /// `LACP_Timeout`: it requests a PDU every second.
    pub const TIMEOUT: Self = Self(1 << 1);
    /// `Aggregation`: it may be a member.
    pub const AGGREGATION: Self = Self(1 << 2);
    /// `Synchronization`: it is selected as a member.
    pub const SYNCHRONIZATION: Self = Self(1 << 3);
    /// `Collecting`: it accepts received packets.
    pub const COLLECTING: Self = Self(1 << 4);
    /// `Distributing`: it may send.
    pub const DISTRIBUTING: Self = Self(1 << 5);
    /// `Defaulted`: its information on the partner is configured, not received.
    pub const DEFAULTED: Self = Self(1 << 6);
    /// `Expired`: no PDU of the partner has arrived for too long.
    pub const EXPIRED: Self = Self(1 << 7);

    /// Whether all bits of `other` are set.
    #[must_use]
    pub const fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
    /// Returns the state with these bits set or cleared.
    #[must_use]
    pub const fn with(self, other: Self, on: bool) -> Self {
        if on {
            Self(self.0 | other.0)
        } else {
            Self(self.0 & !other.0)
        }
    }
}

/// Contents of an actor or partner TLV.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Information {
    /// `System_Priority`.
    pub system_priority: u16,
    /// `System`: a MAC address.
    pub system: [u8; 6],
    /// `Key`: ports with the same key may form a group.
    pub key: u16,
    /// `Port_Priority`.
    pub port_priority: u16,
    /// `Port`, from 1.
    pub port: u16,
    /// `State`.
    pub state: State,
}

/// A PDU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Lacpdu {
    /// Information on the sending port.
    pub actor: Information,
    /// Information on the port at the other end, as known to the sender.
    pub partner: Information,
    /// `CollectorMaxDelay`, in tens of microseconds.
    pub collector_max_delay: u16,
}

/// Reasons why octets are not an LACPDU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// There are too few octets.
    #[error("an LACPDU has {OCTETS} octets, not {0}")]
    TooShort(usize),
    /// The subtype is another protocol's.
    #[error("the subtype of LACP is {SUBTYPE}, not {0}")]
    Subtype(u8),
    /// There is no such version.
    #[error("there is no version {0} of LACP")]
    Version(u8),
    /// A TLV has an unexpected type or length.
    #[error("a TLV of type {} and length {} is due at octet {at}, not type {} and length {}",
        .expected[0], .expected[1], .found[0], .found[1])]
    Tlv {
        /// Offset.
        at: usize,
        /// Expected type and length.
        expected: [u8; 2],
        /// Type and length found.
        found: [u8; 2],
    },
}

impl Lacpdu {
    /// Encodes the PDU.
    #[must_use]
    pub fn encode(&self) -> [u8; OCTETS] {
        let mut octets = [0; OCTETS];
        octets[..2].copy_from_slice(&[SUBTYPE, VERSION]);
        for (at, tlv) in [ACTOR, PARTNER, COLLECTOR, TERMINATOR] {
            octets[at..at + 2].copy_from_slice(&tlv);
        }
        self.actor.write(&mut octets[ACTOR.0 + 2..PARTNER.0]);
        self.partner.write(&mut octets[PARTNER.0 + 2..COLLECTOR.0]);
        octets[COLLECTOR.0 + 2..COLLECTOR.0 + 4]
            .copy_from_slice(&self.collector_max_delay.to_be_bytes());
        octets
    }

    /// Encodes the PDU in an Ethernet frame from `source`, without the checksum.
    #[must_use]
    pub fn frame(&self, source: [u8; 6]) -> [u8; FRAME_OCTETS] {
        let mut octets = [0; FRAME_OCTETS];
        octets[..6].copy_from_slice(&SLOW_PROTOCOLS_ADDRESS);
        octets[6..12].copy_from_slice(&source);
        octets[12..14].copy_from_slice(&SLOW_PROTOCOLS_TYPE.to_be_bytes());
        octets[14..].copy_from_slice(&self.encode());
        octets
    }

    /// Decodes a PDU.
    ///
    /// # Errors
    /// [`DecodeError`].
    pub fn decode(octets: &[u8]) -> Result<Self, DecodeError> {
        let Some(octets) = octets.first_chunk::<OCTETS>() else {
            return Err(DecodeError::TooShort(octets.len()));
        };
        if octets[0] != SUBTYPE {
            return Err(DecodeError::Subtype(octets[0]));
        }
        // §6.4.2.3: later versions begin as the first does.
        if octets[1] == 0 {
            return Err(DecodeError::Version(0));
        }
        for (at, expected) in [ACTOR, PARTNER, COLLECTOR, TERMINATOR] {
            let found = [octets[at], octets[at + 1]];
            if found != expected {
                return Err(DecodeError::Tlv {
                    at,
                    expected,
                    found,
                });
            }
        }
        Ok(Self {
            actor: Information::read(&octets[ACTOR.0 + 2..PARTNER.0]),
            partner: Information::read(&octets[PARTNER.0 + 2..COLLECTOR.0]),
            collector_max_delay: number(&octets[COLLECTOR.0 + 2..]),
        })
    }
}

impl Information {
    fn write(&self, to: &mut [u8]) {
        to[..2].copy_from_slice(&self.system_priority.to_be_bytes());
        to[2..8].copy_from_slice(&self.system);
        to[8..10].copy_from_slice(&self.key.to_be_bytes());
        to[10..12].copy_from_slice(&self.port_priority.to_be_bytes());
        to[12..14].copy_from_slice(&self.port.to_be_bytes());
        to[14] = self.state.0;
    }
    fn read(from: &[u8]) -> Self {
        let mut system = [0; 6];
        system.copy_from_slice(&from[2..8]);
        Self {
            system_priority: number(from),
            system,
            key: number(&from[8..]),
            port_priority: number(&from[10..]),
            port: number(&from[12..]),
            state: State(from[14]),
        }
    }
    /// Whether both are the same port of the same system.
    #[must_use]
    pub fn is_same_port(&self, other: &Self) -> bool {
        let identity = |of: &Self| {
            (
                of.system_priority,
                of.system,
                of.key,
                of.port_priority,
                of.port,
            )
        };
        identity(self) == identity(other)
    }
}

/// The first two octets of `from` as a number.
fn number(from: &[u8]) -> u16 {
    u16::from_be_bytes([from[0], from[1]])
}
