//! Bounds of reading a capture.

/// How much of a capture is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Bytes, decompressed: 16 GiB unless set otherwise. A caller that holds nothing of them needs no bound.
    pub bytes: u64,
    /// Decompressed bytes for each byte of a compressed file. The first 32 MiB are free.
    pub expansion: u64,
}

impl Limits {
    /// No bound.
    pub const NONE: Self = Self {
        bytes: u64::MAX,
        expansion: u64::MAX,
    };
    /// Headers of a long transfer take 10 to 60 times less room when they are compressed, and frames of 1514 bytes full of zeros about
    /// 120 times: each needs a dozen bytes for its time, numbers and checksum. DEFLATE itself ends at 1032.
    pub const EXPANSION: u64 = 256;
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            bytes: 16 << 30,
            expansion: Self::EXPANSION,
        }
    }
}
