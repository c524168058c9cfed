//! Hand-made captures of a TCP connection. A is 192.0.2.1:5000, B is 198.51.100.2:80.

use std::io::Cursor;

use anabranch_diagnose::{
    Bounds, Report, diagnose,
    report::{Connection, OneWay, Retransmission},
};

pub const FIN: u8 = 1;
pub const SYN: u8 = 2;
pub const RST: u8 = 4;
pub const PSH: u8 = 8;
pub const ACK: u8 = 16;

/// The segments of both ends start with these numbers.
const FIRST: [u32; 2] = [u32::MAX - 4000, 70_000];

/// A hand-made packet.
#[derive(Debug, Clone)]
pub struct Made {
    pub micros: u64,
    pub from: usize,
    pub ports: (u16, u16),
    pub seq: u32,
    pub ack: u32,
    pub flags: u8,
    pub window: u16,
    pub payload: u16,
    pub id: u16,
    pub hops: u8,
    pub options: Vec<u8>,
}

impl Made {
    pub fn octets(&self) -> Vec<u8> {
        let mut options = self.options.clone();
        options.resize(options.len().next_multiple_of(4), 1);
        let header = 20 + options.len();
        let length = u16::try_from(20 + header).expect("short") + self.payload;
        let mut packet = vec![0x45, 0];
        packet.extend(length.to_be_bytes());
        packet.extend(self.id.to_be_bytes());
        packet.extend([0x40, 0, self.hops, 6, 0, 0]);
        let ends = [[192, 0, 2, 1], [198, 51, 100, 2]];
        packet.extend(ends[self.from]);
        packet.extend(ends[1 - self.from]);
        let (a, b) = self.ports;
        let ports = if self.from == 0 { [a, b] } else { [b, a] };
        packet.extend(ports.into_iter().flat_map(u16::to_be_bytes));
        packet.extend(self.seq.to_be_bytes());
        packet.extend(self.ack.to_be_bytes());
        packet.push(u8::try_from(header / 4 * 16).expect("at most 15 words"));
        packet.push(self.flags);
        packet.extend(self.window.to_be_bytes());
        packet.extend([0; 4]);
        packet.extend(options);
        packet.resize(usize::from(length), 0);
        packet
    }
}

/// A capture of raw IP in microseconds, with at most `snaplen` octets of each frame.
pub fn pcap(packets: &[Made], snaplen: usize) -> Vec<u8> {
    let mut file = 0xa1b2_c3d4_u32.to_le_bytes().to_vec();
    file.extend([2_u16, 4].into_iter().flat_map(u16::to_le_bytes));
    file.extend(
        [0_u32, 0, 65_535, 101]
            .into_iter()
            .flat_map(u32::to_le_bytes),
    );
    for packet in packets {
        let octets = packet.octets();
        let kept = octets.len().min(snaplen);
        let part = |value: u64| u32::try_from(value).expect("32 bits").to_le_bytes();
        file.extend(part(packet.micros / 1_000_000));
        file.extend(part(packet.micros % 1_000_000));
        file.extend(part(kept as u64));
        file.extend(part(octets.len() as u64));
        file.extend(&octets[..kept]);
    }
    file
}

/// Packets between A and B, with sequence numbers relative to the first octet of data.
#[derive(Debug, Clone, Default)]
pub struct Script {
    pub packets: Vec<Made>,
    ids: [u16; 2],
    /// The acknowledgment of each end.
    acks: [u32; 2],
    pub has_stamps: bool,
}

pub const MSS: u32 = 1000;

impl Script {
    /// A connection with a handshake at 0, 10 and 20 ms: the round trip from the capture point to
    /// each end takes 10 ms.
    pub fn opened() -> Self {
        let mut script = Self::default();
        let options = vec![2, 4, 3, 232, 4, 2];
        script.add(0, 0, u32::MAX, 0, SYN, options.clone());
        script.add(10, 1, u32::MAX, 0, SYN | ACK, options);
        script.add(20, 0, 0, 0, ACK, vec![]);
        script
    }

    /// The same with timestamps in milliseconds.
    pub fn with_stamps() -> Self {
        Self {
            has_stamps: true,
            ..Self::opened()
        }
    }

    fn add(&mut self, ms: u64, from: usize, seq: u32, payload: u32, flags: u8, options: Vec<u8>) {
        self.ids[from] = self.ids[from].wrapping_add(1);
        let ack = if flags & ACK == 0 {
            0
        } else {
            FIRST[1 - from].wrapping_add(1 + self.acks[from])
        };
        self.packets.push(Made {
            micros: 1_000_000_000 + ms * 1_000,
            from,
            ports: (5000, 80),
            seq: FIRST[from].wrapping_add(1).wrapping_add(seq),
            ack,
            flags,
            window: 60_000,
            payload: u16::try_from(payload).expect("16 bits"),
            id: self.ids[from],
            hops: 64,
            options,
        });
    }

    /// Adds data of A.
    pub fn data(&mut self, ms: u64, seq: u32, payload: u32) -> &mut Self {
        let stamps = self.stamps(ms, 0);
        self.add(ms, 0, seq, payload, ACK, stamps);
        self
    }

    /// Adds an acknowledgment of A's data, with SACK blocks.
    pub fn ack(&mut self, ms: u64, ack: u32, sacks: &[(u32, u32)]) -> &mut Self {
        self.acks[1] = ack;
        let mut options = vec![];
        if !sacks.is_empty() {
            options.extend([5, u8::try_from(2 + 8 * sacks.len()).expect("few")]);
            for (start, end) in sacks {
                for edge in [start, end] {
                    options.extend(FIRST[0].wrapping_add(1 + edge).to_be_bytes());
                }
            }
        }
        self.add(ms, 1, 0, 0, ACK, options);
        self
    }

    /// Adds data of B.
    pub fn answer(&mut self, ms: u64, seq: u32, payload: u32) -> &mut Self {
        self.add(ms, 1, seq, payload, ACK, vec![]);
        self.acks[0] = self.acks[0].max(seq + payload);
        self
    }

    /// Adds an acknowledgment that echoes a timestamp.
    pub fn echo(&mut self, ms: u64, ack: u32, echo: u64) -> &mut Self {
        self.acks[1] = ack;
        let stamps = self.stamps(ms, echo);
        self.add(ms, 1, 0, 0, ACK, stamps);
        self
    }

    fn stamps(&self, ms: u64, echo: u64) -> Vec<u8> {
        if !self.has_stamps {
            return vec![];
        }
        let part = |value: u64| u32::try_from(value).expect("32 bits").to_be_bytes();
        [&[8, 10][..], &part(7_000 + ms), &part(7_000 + echo)].concat()
    }

    pub fn last(&mut self) -> &mut Made {
        self.packets.last_mut().expect("a packet")
    }

    /// Removes the last packet: the capture lost it, or it was lost before the capture point.
    pub fn forget(&mut self) -> &mut Self {
        self.packets.pop();
        self
    }

    pub fn report(&self) -> Report {
        report(&self.packets)
    }

    pub fn connection(&self) -> Connection {
        let mut report = self.report();
        assert_eq!(report.connections.len(), 1);
        report.connections.remove(0)
    }

    /// The data of A.
    pub fn sent(&self) -> OneWay {
        self.connection().directions.a_to_b
    }

    /// The only retransmission of A's data.
    pub fn retransmission(&self) -> Retransmission {
        let mut found = self.sent().retransmissions;
        assert_eq!(found.len(), 1, "{found:?}");
        found.remove(0)
    }
}

pub fn report(packets: &[Made]) -> Report {
    read(&pcap(packets, 65_535), Bounds::default())
}

pub fn read(file: &[u8], bounds: Bounds) -> Report {
    diagnose(Cursor::new(file), "made.pcap", bounds, || false)
        .unwrap_or_else(|error| panic!("{error}"))
}
