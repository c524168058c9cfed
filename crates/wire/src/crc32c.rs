//! CRC-32C: the checksum of iSCSI and SCTP (RFC 3720 §12.1, RFC 9260 appendix A).

/// Castagnoli's polynomial, lowest bit first.
const POLYNOMIAL: u32 = 0x82f6_3b78;

/// `TABLES[k][octet]`: the effect of the octet on the remainder, k octets later.
static TABLES: [[u32; 256]; 8] = tables();

const fn tables() -> [[u32; 256]; 8] {
    let mut tables = [[0; 256]; 8];
    let mut octet = 0;
    while octet < 256 {
        #[expect(clippy::cast_possible_truncation, reason = "below 256")]
        let mut remainder = octet as u32;
        let mut bit = 0;
        while bit < 8 {
            remainder = (remainder >> 1) ^ if remainder & 1 == 1 { POLYNOMIAL } else { 0 };
            bit += 1;
        }
        tables[0][octet] = remainder;
        octet += 1;
    }
    let mut k = 1;
    while k < 8 {
        let mut octet = 0;
        while octet < 256 {
            let before = tables[k - 1][octet];
            tables[k][octet] = (before >> 8) ^ tables[0][(before & 0xff) as usize];
            octet += 1;
        }
        k += 1;
    }
    tables
}

/// An incremental checksum.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Crc32c(u32);

impl Default for Crc32c {
    fn default() -> Self {
        Self(u32::MAX)
    }
}

impl Crc32c {
    /// Adds octets.
    pub fn add(&mut self, octets: &[u8]) {
        let mut remainder = self.0;
        let (eights, rest) = octets.as_chunks::<8>();
        for eight in eights {
            let both = u64::from_le_bytes(*eight) ^ u64::from(remainder);
            remainder = 0;
            for (octet, table) in both.to_le_bytes().into_iter().zip(TABLES.iter().rev()) {
                remainder ^= table[usize::from(octet)];
            }
        }
        for octet in rest {
            let index = (remainder ^ u32::from(*octet)) & 0xff;
            remainder = (remainder >> 8) ^ TABLES[0][index as usize];
        }
        self.0 = remainder;
    }

    /// The checksum of the octets added.
    #[must_use]
    pub const fn finish(self) -> u32 {
        !self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn crc(octets: &[u8]) -> u32 {
        let mut crc = Crc32c::default();
        crc.add(octets);
        crc.finish()
    }

    #[test]
    fn crc32c_matches_the_examples_of_rfc_3720() {
        // RFC 3720 appendix B.4, with the octets of the checksum in transmission order.
        let ascending: [u8; 32] = std::array::from_fn(|i| i.to_le_bytes()[0]);
        let descending: [u8; 32] = std::array::from_fn(|i| 31 - i.to_le_bytes()[0]);
        assert_eq!(crc(&[0; 32]).to_le_bytes(), [0xaa, 0x36, 0x91, 0x8a]);
        assert_eq!(crc(&[0xff; 32]).to_le_bytes(), [0x43, 0xab, 0xa8, 0x62]);
        assert_eq!(crc(&ascending).to_le_bytes(), [0x4e, 0x79, 0xdd, 0x46]);
        assert_eq!(crc(&descending).to_le_bytes(), [0x5c, 0xdb, 0x3f, 0x11]);
    }

    #[test]
    fn parts_give_the_checksum_of_the_whole() {
        let octets: Vec<u8> = (0..=255).cycle().take(1_000).collect();
        for cut in [0, 1, 7, 8, 9, 500, 999] {
            let mut parts = Crc32c::default();
            parts.add(&octets[..cut]);
            parts.add(&octets[cut..]);
            assert_eq!(parts.finish(), crc(&octets), "{cut}");
        }
    }
}
