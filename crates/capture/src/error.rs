//! Why a capture cannot be read. Packets are counted from 1, as in Wireshark.

/// Why a capture cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// Neither pcap nor pcapng.
    #[error("it is not a capture; expected pcap or pcapng, or either compressed with gzip or zstd")]
    NotACapture,
    /// It ends within its header.
    #[error("it is cut off within the header of the file; expected a capture with packets")]
    NoHeader,
    /// Something that the format does not allow.
    #[error(
        "what follows packet {after} is broken: {what}; expected a record of pcap or a block of pcapng"
    )]
    Broken {
        /// Packets before that.
        after: u64,
        /// What is wrong.
        what: &'static str,
    },
    /// The compressed data is damaged.
    #[error(
        "what follows packet {after} cannot be decompressed ({format}); expected an undamaged file"
    )]
    Compression {
        /// Packets before that.
        after: u64,
        /// How it is compressed.
        format: &'static str,
    },
    /// Decompressed it has more bytes than are read.
    #[error("decompressed it has more than {} GiB; expected a shorter capture", .most >> 30)]
    TooLarge {
        /// The most bytes.
        most: u64,
    },
    /// Its compressed form is smaller than that of a capture.
    #[error(
        "what follows packet {after} expands to more than {times} times its compressed size; expected a capture: decompress it first, or allow any expansion"
    )]
    Expands {
        /// Packets before that.
        after: u64,
        /// The most decompressed bytes for a compressed one.
        times: u64,
    },
    /// The reader of the file fails.
    #[error("it cannot be read: {0}; expected a file that can be read")]
    System(String),
    /// The writer of a copy fails.
    #[error("it cannot be written: {why}; expected a file that can be written")]
    Unwritable {
        /// The system's error number, if the system refuses.
        number: Option<i32>,
        /// The reason in words.
        why: String,
    },
    /// Its packets are not in order of time, and the temporary file of the sort fails.
    #[error(
        "its packets cannot be sorted by time: {0}; expected room for temporary files (TMPDIR)"
    )]
    Unsorted(String),
    /// Reading was to stop.
    #[error("reading was interrupted; expected time to read it")]
    Interrupted,
}
