//! Errors of reading a capture. Packets are counted from 1, as in Wireshark.

/// Error of reading or writing a capture.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// Neither pcap nor pcapng.
    #[error("it is not a capture; expected pcap or pcapng, or either compressed with gzip or zstd")]
    NotACapture,
    /// It ends within its header.
    #[error("it is cut off within the header of the file; expected a capture with packets")]
    NoHeader,
    /// The file violates its format.
    #[error(
        "the data after packet {after} is damaged: {what}; expected a record of pcap or a block of pcapng"
    )]
    Broken {
        /// Packets before the damage.
        after: u64,
        /// The damaged element.
        what: &'static str,
    },
    /// The compressed data is damaged.
    #[error(
        "the data after packet {after} cannot be decompressed ({format}); expected an undamaged file"
    )]
    Compression {
        /// Packets before the damage.
        after: u64,
        /// How it is compressed.
        format: &'static str,
    },
    /// The decompressed data exceeds the limit.
    #[error("decompressed it has more than {} GiB; expected a shorter capture", .most >> 30)]
    TooLarge {
        /// The limit in bytes.
        most: u64,
    },
    /// The data expands more than captures do.
    #[error(
        "the data after packet {after} expands to more than {times} times its compressed size; expected a capture: decompress it first, or allow any expansion"
    )]
    Expands {
        /// Packets before the limit was reached.
        after: u64,
        /// The limit: decompressed bytes per compressed byte.
        times: u64,
    },
    /// The file cannot be read.
    #[error("it cannot be read: {0}; expected a file that can be read")]
    System(String),
    /// The copy cannot be written.
    #[error("it cannot be written: {why}; expected a file that can be written")]
    Unwritable {
        /// The system's error number, if the system reported one.
        number: Option<i32>,
        /// The reason in words.
        why: String,
    },
    /// The packets are out of order in time, and the temporary file for sorting fails.
    #[error(
        "its packets cannot be sorted by time: {0}; expected room for temporary files (TMPDIR)"
    )]
    Unsorted(String),
    /// `stop` returned true.
    #[error("reading was interrupted; expected time to read it")]
    Interrupted,
}
