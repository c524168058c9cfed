//! The data of a replay: time and length of each selected IP packet of a capture.
//!
//! [`anabranch_capture`] reads the file. Packets are sorted by time; packets of one time keep their
//! order.

use std::{collections::BTreeMap, fmt::Write};

use anabranch_capture::{Conversations, Counts, Fragments, Packet, Reader, Selection, Skip};
use anabranch_core::units::Duration;
use schemars::JsonSchema;
use serde::Serialize;

/// The selected packets of a capture, in order of time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recording {
    packets: Vec<Recorded>,
    bytes: u64,
    counts: Counts,
}

/// One IP packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Recorded {
    /// The time since the first packet.
    pub time: Duration,
    /// Bytes, IP header included.
    pub size: u32,
}

/// The reason why a capture cannot be replayed. Packets are counted from 1, as in Wireshark. The
/// text after `"; "` is the expectation.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RecordingError {
    /// The file cannot be read.
    #[error(transparent)]
    Capture(#[from] anabranch_capture::Error),
    /// No IP packets.
    #[error("it has no IP packet{}; expected one or more", among(.0))]
    NoPackets(Counts),
    /// No packet is selected.
    #[error("none of its {packets} IP packets is selected; expected what it has, for example")]
    NothingSelected {
        /// IP packets of all senders.
        packets: u64,
        /// Possible selections.
        choices: Choices,
    },
    /// Two directions: hosts answer each other, but a flow sends in one direction.
    #[error(
        "it has packets in both directions, and a replay sends in one; expected a direction, for example"
    )]
    TwoWay(Choices),
    /// The time between the first packet and the last exceeds that of a run.
    #[error("packet {packet} is more than 100 days from the first; expected a shorter capture")]
    TooLong {
        /// The number of the packet.
        packet: u64,
    },
    /// More packets than fit in memory.
    #[error("it has more than {most} packets to replay; expected fewer")]
    TooMany {
        /// The most.
        most: usize,
    },
}

/// Possible selections in a capture, the largest first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Choices(Vec<String>);

impl Choices {
    const MOST: usize = 10;

    /// Lists the conversations of the selected packets; each line is a selection of
    /// exactly its packets.
    fn of(selected: &Conversations, all: &Conversations, selection: &Selection) -> Self {
        let by_protocol = selection.protocol.is_some();
        let (largest, more) = selected.largest(Self::MOST, all, by_protocol);
        let mut lines: Vec<_> = largest.iter().map(ToString::to_string).collect();
        if more > 0 {
            lines.push(format!("and {more} more"));
        }
        Self(lines)
    }

    /// One line per selection.
    #[must_use]
    pub fn lines(&self) -> &[String] {
        &self.0
    }
}

const PICOS_PER_DAY: i128 = 86_400_000_000_000_000;
/// The clock of a run has 64 bits of picoseconds, which are 213 days.
const LONGEST: i128 = 100 * PICOS_PER_DAY;

/// The most packets of a recording: 1 GiB of memory.
const MOST_PACKETS: usize = 64 << 20;

impl Recording {
    /// Reads the selected packets of a capture; `stop` is polled every few milliseconds and
    /// cancels.
    ///
    /// # Errors
    /// If the file is not a capture or cannot be replayed, or if the selection is empty or has two
    /// directions.
    pub fn read(
        file: &[u8],
        selection: &Selection,
        stop: impl Fn() -> bool,
    ) -> Result<Self, RecordingError> {
        let mut reader = Reader::open_until(file, stop)?;
        let mut reading = Reading::default();
        while let Some(packet) = reader.next_packet()? {
            reading.packet(&packet, selection)?;
        }
        reading.finish(reader.counts().clone(), selection)
    }

    /// Reads all packets of a capture with one direction.
    ///
    /// # Errors
    /// As for [`Self::read`].
    pub fn parse(file: &[u8]) -> Result<Self, RecordingError> {
        Self::read(file, &Selection::default(), || false)
    }

    /// Creates a recording from packets in order of time; `None` without packets or in another
    /// order.
    #[must_use]
    pub fn new(packets: Vec<Recorded>) -> Option<Self> {
        let sorted = packets.windows(2).all(|pair| pair[0].time <= pair[1].time);
        let first = packets.first()?.time;
        let bytes = packets.iter().map(|packet| u64::from(packet.size)).sum();
        let counts = Counts {
            frames: packets.len() as u64,
            packets: packets.len() as u64,
            ..Counts::default()
        };
        (sorted && first.is_zero()).then_some(Self {
            packets,
            bytes,
            counts,
        })
    }
    /// The packets.
    #[must_use]
    pub fn packets(&self) -> &[Recorded] {
        &self.packets
    }
    /// IP bytes of all packets.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes
    }
    /// The counts of the whole capture.
    #[must_use]
    pub fn counts(&self) -> &Counts {
        &self.counts
    }
    /// The time from the first packet to the last.
    #[must_use]
    pub fn span(&self) -> Duration {
        self.packets
            .last()
            .map_or(Duration::ZERO, |packet| packet.time)
    }

    /// The counts of packets read and skipped, as results show them.
    #[must_use]
    pub fn summary(&self) -> CaptureSummary {
        CaptureSummary {
            frames: self.counts.frames,
            ip_packets: self.counts.packets,
            replayed_packets: self.packets.len(),
            not_selected_packets: self.counts.packets - self.packets.len() as u64,
            fragments: self.counts.fragments,
            time_went_back: self.counts.went_back,
            cut_off: self.counts.is_cut_off,
            trailing_bytes: self.counts.trailing,
            skipped: named(&self.counts.skipped),
        }
    }
}

/// A capture that a flow replays.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct CaptureSummary {
    /// Frames in the capture.
    pub frames: u64,
    /// Frames that are IP packets.
    pub ip_packets: u64,
    /// Packets that are replayed.
    pub replayed_packets: usize,
    /// Packets that the flow's selection excludes.
    pub not_selected_packets: u64,
    /// Fragments of IP packets.
    pub fragments: u64,
    /// Frames with a time before that of the previous frame.
    pub time_went_back: u64,
    /// Whether the file ends in the middle of a frame.
    pub cut_off: bool,
    /// Octets after the last whole frame.
    pub trailing_bytes: u64,
    /// Frames without a usable packet, by reason.
    #[schemars(extend("unit" = "count"))]
    pub skipped: BTreeMap<String, u64>,
}

fn named(skipped: &BTreeMap<Skip, u64>) -> BTreeMap<String, u64> {
    let named = skipped.iter().map(|(skip, count)| (skip.name(), *count));
    named.collect()
}

/// The other contents of a capture without IP packets.
fn among(counts: &Counts) -> String {
    let mut text = match counts.frames {
        0 => " and no other".to_owned(),
        1 => " in 1 frame".to_owned(),
        frames => format!(" in {frames} frames"),
    };
    for (k, (skip, count)) in counts.skipped.iter().enumerate() {
        let before = if k == 0 { " (" } else { ", " };
        let _ = write!(text, "{before}{count} of {skip}");
    }
    if !counts.skipped.is_empty() {
        text.push(')');
    }
    if counts.is_cut_off {
        text.push_str(" before it is cut off");
    }
    text
}

/// The state of reading.
#[derive(Default)]
struct Reading {
    /// The time of the first selected packet in the file, the origin of all times.
    first: Option<i128>,
    /// Picoseconds since the first, which may be negative, and sizes.
    packets: Vec<(i64, u32)>,
    bytes: u64,
    fragments: Fragments,
    selected: Conversations,
    all: Conversations,
}

impl Reading {
    fn packet(&mut self, packet: &Packet<'_>, selection: &Selection) -> Result<(), RecordingError> {
        let ports = self.fragments.ports(&packet.ip);
        self.all.add(&packet.ip, ports);
        if !selection.has(&packet.ip, ports) {
            return Ok(());
        }
        self.selected.add(&packet.ip, ports);
        if self.packets.len() == MOST_PACKETS {
            return Err(RecordingError::TooMany { most: MOST_PACKETS });
        }
        let since = packet.time - *self.first.get_or_insert(packet.time);
        let time = i64::try_from(since).ok();
        let time = time.filter(|_| since.abs() <= LONGEST);
        let number = packet.number;
        let time = time.ok_or(RecordingError::TooLong { packet: number })?;
        self.bytes += u64::from(packet.ip.length);
        self.packets.push((time, packet.ip.length));
        Ok(())
    }

    fn finish(
        mut self,
        counts: Counts,
        selection: &Selection,
    ) -> Result<Recording, RecordingError> {
        if counts.packets == 0 {
            return Err(RecordingError::NoPackets(counts));
        }
        if self.packets.is_empty() {
            return Err(RecordingError::NothingSelected {
                packets: counts.packets,
                choices: Choices::of(&self.all, &self.all, &Selection::default()),
            });
        }
        if self.selected.is_two_way() {
            let choices = Choices::of(&self.selected, &self.all, selection);
            return Err(RecordingError::TwoWay(choices));
        }
        // Stable: packets of one time keep the order of the file.
        self.packets.sort_by_key(|(time, _)| *time);
        let first = self.packets.first().map_or(0, |(time, _)| *time);
        let packets: Vec<_> = self
            .packets
            .into_iter()
            .map(|(time, size)| Recorded {
                time: Duration::from_picos(time.abs_diff(first)),
                size,
            })
            .collect();
        Ok(Recording {
            packets,
            bytes: self.bytes,
            counts,
        })
    }
}
