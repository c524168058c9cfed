//! Errors of packets, and counters of discarded packets.

/// Reason for discarding a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, thiserror::Error)]
#[repr(u8)]
pub enum DecodeError {
    /// It ends within the fixed header of IP.
    #[error("the packet ends inside the IP header")]
    IpTruncated,
    /// Neither 4 nor 6.
    #[error("the IP version is neither 4 nor 6")]
    Version,
    /// The IPv4 header length is below 20 octets or beyond the packet (RFC 791 §3.1).
    #[error("the IPv4 header length is impossible")]
    IpHeaderLength,
    /// The packet claims to be longer than it is, or shorter than its own header.
    #[error("the IP length does not fit the packet")]
    IpLength,
    /// The IPv4 header checksum is wrong (RFC 791 §3.1).
    #[error("the IPv4 header checksum is wrong")]
    IpChecksum,
    /// It is a fragment (RFC 791 §3.2, RFC 8200 §4.5).
    #[error("the packet is a fragment")]
    Fragment,
    /// IPv6 extension headers that run past the end, or that would have to be processed.
    #[error("an IPv6 extension header is impossible or not known")]
    Extension,
    /// It carries another protocol.
    #[error("the packet carries no TCP segment")]
    Protocol,
    /// It ends within the fixed header of TCP.
    #[error("the packet ends inside the TCP header")]
    TcpTruncated,
    /// The data offset is below 5 words or beyond the segment (RFC 9293 §3.1).
    #[error("the TCP data offset is impossible")]
    DataOffset,
    /// The TCP checksum is wrong (RFC 9293 §3.1).
    #[error("the TCP checksum is wrong")]
    TcpChecksum,
    /// An option's length field is missing, below 2 or wrong for its kind (RFC 9293 §3.2).
    #[error("a TCP option has an impossible length")]
    OptionLength,
    /// An option reaches past the end of the header (RFC 9293 §3.2).
    #[error("a TCP option reaches past the end of the header")]
    OptionPastEnd,
}

impl DecodeError {
    /// All reasons, in the order of [`Discards`].
    pub const ALL: [Self; 13] = [
        Self::IpTruncated,
        Self::Version,
        Self::IpHeaderLength,
        Self::IpLength,
        Self::IpChecksum,
        Self::Fragment,
        Self::Extension,
        Self::Protocol,
        Self::TcpTruncated,
        Self::DataOffset,
        Self::TcpChecksum,
        Self::OptionLength,
        Self::OptionPastEnd,
    ];

    /// Its name in results.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::IpTruncated => "ip-truncated",
            Self::Version => "ip-version",
            Self::IpHeaderLength => "ip-header-length",
            Self::IpLength => "ip-length",
            Self::IpChecksum => "ip-checksum",
            Self::Fragment => "fragment",
            Self::Extension => "ipv6-extension",
            Self::Protocol => "protocol",
            Self::TcpTruncated => "tcp-truncated",
            Self::DataOffset => "data-offset",
            Self::TcpChecksum => "tcp-checksum",
            Self::OptionLength => "option-length",
            Self::OptionPastEnd => "option-past-end",
        }
    }
}

/// Counters of discarded packets by reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Discards([u64; DecodeError::ALL.len()]);

impl Discards {
    /// Counts a packet.
    pub const fn count(&mut self, error: DecodeError) {
        self.0[error as usize] += 1;
    }
    /// Number of packets discarded for this reason.
    #[must_use]
    pub const fn of(&self, error: DecodeError) -> u64 {
        self.0[error as usize]
    }
    /// Total number of discarded packets.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.0.iter().sum()
    }
    /// All reasons with their counts.
    pub fn iter(&self) -> impl Iterator<Item = (DecodeError, u64)> + '_ {
        DecodeError::ALL
            .into_iter()
            .map(|error| (error, self.of(error)))
    }
}

/// Reason why a segment cannot be encoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum EncodeError {
    /// More than 40 octets of options (RFC 9293 §3.1).
    #[error("the TCP options take {0} octets, more than 40")]
    Options(usize),
    /// More octets than IP's length field can represent.
    #[error("the packet has {0} octets, more than IP's length field can tell")]
    Length(usize),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reason_has_its_place() {
        let mut discards = Discards::default();
        for (place, error) in DecodeError::ALL.into_iter().enumerate() {
            assert_eq!(error as usize, place, "{error:?}");
            for _ in 0..=place {
                discards.count(error);
            }
        }
        for (place, (error, n)) in discards.iter().enumerate() {
            assert_eq!(n, place as u64 + 1, "{}", error.name());
        }
        assert_eq!(discards.total(), (1..=13).sum::<u64>());
    }
}
