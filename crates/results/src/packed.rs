//! The packets of a finished run, in a fifth of the memory of the engine's log.
//!
//! A row is stored as its differences from the previous row of its connection and direction, in
//! variable-length numbers of seven bits per octet.

use anabranch::{
    packet::{ConnectionId, Direction, FlowId},
    record::{PacketLog, PacketRow, WindowRow},
    tcp::RetransmitCause,
    trace::{ElementId, Fate},
    units::{Duration, Instant},
};

/// A packet and whether its transmission was needed.
pub type Judged = (PacketRow, Option<bool>);

/// A retransmission and its original.
pub struct Retransmission {
    pub row: PacketRow,
    pub needed: Option<bool>,
    pub original: Option<PacketRow>,
}

/// The packets that count, in the order of the log, and its other contents.
#[derive(Default)]
pub struct Packets {
    octets: Vec<u8>,
    causes: Vec<RetransmitCause>,
    fates: Vec<Fate>,
    /// In the order of the rows.
    pub retransmissions: Vec<Retransmission>,
    /// Changes of windows.
    pub windows: Vec<WindowRow>,
    /// Number of packets sent after the log was full.
    pub left_out: u64,
}

// Bits of a row's first number.
const BEGINS: u64 = 1;
const RETRANSMISSION: u64 = 1 << 1;
const RECEIVED: u64 = 1 << 2;
const LOST: u64 = 1 << 3;
const WAITED: u64 = 1 << 4;
const OUT_OF_SEQUENCE: u64 = 1 << 5;
const OTHER_SIZE: u64 = 1 << 6;
const REORDERED: u64 = 1 << 7;
const REBUILT: u64 = 1 << 8;
const CAUSE: u64 = 1 << 9;
const JUDGED: u64 = 1 << 10;
const NEEDED: u64 = 1 << 11;
const INDEX: u64 = 1 << 12;
const REFUSED: u64 = 1 << 13;

impl Packets {
    /// Packs the rows of a log.
    #[must_use]
    pub fn of(log: &PacketLog) -> Self {
        let mut packed = Self {
            windows: log.windows().to_vec(),
            left_out: log.left_out(),
            ..Self::default()
        };
        let again = log.retransmitted().map(|one| Retransmission {
            row: one.row.clone(),
            needed: one.needed,
            original: one.original.cloned(),
        });
        packed.retransmissions = again.collect();
        // In the order of the rows. Other packets are not judged.
        let judged: Vec<_> = packed
            .retransmissions
            .iter()
            .map(|one| one.needed)
            .collect();
        let mut judged = judged.into_iter();
        for rows in log.connections() {
            let mut last = None;
            for row in rows.iter().filter(|row| row.counts()) {
                let needed = if row.retransmission {
                    judged.next().flatten()
                } else {
                    None
                };
                packed.push(row, needed, last);
                last = Some(row);
            }
        }
        packed.octets.shrink_to_fit();
        packed
    }

    fn push(&mut self, row: &PacketRow, needed: Option<bool>, last: Option<&PacketRow>) {
        let first = first_row();
        let before = last.unwrap_or(&first);
        let flag = |is_set: bool, bit: u64| if is_set { bit } else { 0 };
        let head = flag(last.is_none(), BEGINS)
            | flag(row.retransmission, RETRANSMISSION)
            | flag(row.received.is_some(), RECEIVED)
            | flag(row.lost.is_some(), LOST)
            | flag(row.queue_delay.is_some(), WAITED)
            | flag(row.sequence != next_sequence(before), OUT_OF_SEQUENCE)
            | flag(
                (row.payload, row.size) != (before.payload, before.size),
                OTHER_SIZE,
            )
            | flag(row.reordered || row.extent != 0, REORDERED)
            | flag(row.rebuilt, REBUILT)
            | flag(row.cause.is_some(), CAUSE)
            | flag(needed.is_some(), JUDGED)
            | flag(needed == Some(true), NEEDED)
            | flag(row.index != before.index.wrapping_add(1), INDEX)
            | flag(row.refused != 0, REFUSED);
        self.number(head);
        if head & BEGINS != 0 {
            self.number(row.flow.0.into());
            self.number(row.connection.0.into());
            self.number(row.direction as u64);
        }
        if head & INDEX != 0 {
            self.number(row.index.into());
        }
        if head & OUT_OF_SEQUENCE != 0 {
            self.difference(row.sequence, next_sequence(before));
        }
        if head & OTHER_SIZE != 0 {
            self.number(row.payload.into());
            self.number(row.size.into());
        }
        self.difference(row.sent.as_picos(), before.sent.as_picos());
        if let Some(received) = row.received {
            self.difference(received.as_picos(), row.sent.as_picos());
        }
        if let Some((element, fate)) = row.lost {
            self.number(element.0.into());
            let code = code(&mut self.fates, fate);
            self.number(code);
        }
        if let Some(delay) = row.queue_delay {
            self.number(delay.as_picos());
        }
        if head & REORDERED != 0 {
            self.number(row.extent << 1 | u64::from(row.reordered));
        }
        if let Some(cause) = row.cause {
            let code = code(&mut self.causes, cause);
            self.number(code);
        }
        if head & REFUSED != 0 {
            self.number(row.refused.into());
        }
    }

    fn number(&mut self, mut number: u64) {
        while number >= 0x80 {
            self.octets.push(low(number) | 0x80);
            number >>= 7;
        }
        self.octets.push(low(number));
    }

    /// Writes a difference of either sign.
    fn difference(&mut self, number: u64, from: u64) {
        let difference = number.wrapping_sub(from).cast_signed();
        self.number((difference << 1 ^ difference >> 63).cast_unsigned());
    }
}

/// The lowest octet.
const fn low(number: u64) -> u8 {
    number.to_le_bytes()[0]
}

/// The position of a value in the list of distinct values.
fn code<T: PartialEq>(known: &mut Vec<T>, value: T) -> u64 {
    let at = known.iter().position(|one| *one == value);
    at.unwrap_or_else(|| {
        known.push(value);
        known.len() - 1
    }) as u64
}

const fn next_sequence(row: &PacketRow) -> u64 {
    row.sequence.wrapping_add(row.payload as u64)
}

/// The row from which the first row of a connection differs.
const fn first_row() -> PacketRow {
    PacketRow {
        flow: FlowId(0),
        connection: ConnectionId(0),
        direction: Direction::Forward,
        index: 0,
        sequence: 0,
        payload: 0,
        size: 0,
        retransmission: false,
        cause: None,
        sent: Instant::START,
        received: None,
        lost: None,
        rebuilt: false,
        refused: 0,
        queue_delay: None,
        reordered: false,
        extent: 0,
    }
}

/// A read position in the packets.
pub struct Cursor {
    at: usize,
    last: PacketRow,
}

impl Default for Cursor {
    fn default() -> Self {
        Self {
            at: 0,
            last: first_row(),
        }
    }
}

impl Cursor {
    /// The next packets, at most `most`; fewer only at the end.
    pub fn take(&mut self, packets: &Packets, most: usize) -> Vec<Judged> {
        let mut found = Vec::new();
        while found.len() < most && self.at < packets.octets.len() {
            found.push(self.row(packets));
        }
        found
    }

    fn row(&mut self, packets: &Packets) -> Judged {
        let head = self.number(packets);
        if head & BEGINS != 0 {
            self.last = first_row();
            self.last.flow = FlowId(self.short(packets));
            self.last.connection = ConnectionId(self.short(packets));
            self.last.direction = Direction::BOTH[self.place(packets)];
        }
        let index = match head & INDEX {
            0 => self.last.index.wrapping_add(1),
            _ => self.short(packets),
        };
        let sequence = match head & OUT_OF_SEQUENCE {
            0 => next_sequence(&self.last),
            _ => self.difference(packets, next_sequence(&self.last)),
        };
        let (payload, size) = match head & OTHER_SIZE {
            0 => (self.last.payload, self.last.size),
            _ => (self.short(packets), self.short(packets)),
        };
        let sent = self.difference(packets, self.last.sent.as_picos());
        let received = (head & RECEIVED != 0).then(|| self.difference(packets, sent));
        let lost = (head & LOST != 0).then(|| {
            let element = ElementId(self.short(packets));
            (element, packets.fates[self.place(packets)])
        });
        let queue_delay = (head & WAITED != 0).then(|| self.number(packets));
        let extent = if head & REORDERED == 0 {
            0
        } else {
            self.number(packets)
        };
        let cause = (head & CAUSE != 0).then(|| packets.causes[self.place(packets)]);
        let refused = match head & REFUSED {
            0 => 0,
            _ => self.short(packets),
        };
        self.last = PacketRow {
            index,
            sequence,
            payload,
            size,
            retransmission: head & RETRANSMISSION != 0,
            cause,
            sent: Instant::from_picos(sent),
            received: received.map(Instant::from_picos),
            lost,
            rebuilt: head & REBUILT != 0,
            refused,
            queue_delay: queue_delay.map(Duration::from_picos),
            reordered: extent & 1 == 1,
            extent: extent >> 1,
            ..self.last.clone()
        };
        let needed = (head & JUDGED != 0).then_some(head & NEEDED != 0);
        (self.last.clone(), needed)
    }

    fn number(&mut self, packets: &Packets) -> u64 {
        let (mut number, mut shift) = (0, 0);
        loop {
            let octet = packets.octets[self.at];
            self.at += 1;
            number |= u64::from(octet & 0x7f) << shift;
            if octet < 0x80 {
                return number;
            }
            shift += 7;
        }
    }

    fn difference(&mut self, packets: &Packets, from: u64) -> u64 {
        let number = self.number(packets);
        from.wrapping_add((number >> 1) ^ (number & 1).wrapping_neg())
    }

    fn short(&mut self, packets: &Packets) -> u32 {
        u32::try_from(self.number(packets)).expect("it was packed from 32 bits")
    }

    fn place(&mut self, packets: &Packets) -> usize {
        self.short(packets) as usize
    }
}
