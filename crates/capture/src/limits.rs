//! Bounds of reading a capture.

/// Bounds on the amount of data read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Decompressed bytes: 16 GiB by default. A caller that stores none of them needs no bound.
    pub bytes: u64,
    /// Decompressed bytes per byte of a compressed file. The first 32 MiB are exempt.
    pub expansion: u64,
}

impl Limits {
    /// No bound.
    pub const NONE: Self = Self {
        bytes: u64::MAX,
        expansion: u64::MAX,
    };
    /// Compression shrinks the headers of a long transfer 10 to 60 times, and frames of 1514 bytes
    /// full of zeros about 120 times: each frame needs a dozen bytes for its time, numbers and
    /// checksum. DEFLATE reaches at most 1032.
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
