//! A capture of arbitrary segments of a few connections: times and sequence numbers that jump, any
//! flags and options.
#![cfg_attr(feature = "libfuzzer", no_main)]

mod diagnosis;

use anabranch_fuzz::fuzz_target;

/// Octets of input per segment.
const STEP: usize = 16;
/// Raw IP.
const LINK_TYPE: u32 = 101;

/// Maximum captured octets of a segment.
const SNAPLEN: u32 = 96;

fuzz_target!(|input: &[u8]| {
    let mut capture = header();
    let mut time = 1 << 50;
    let mut edges = [[0_u32; 2]; 4];
    for step in input.chunks_exact(STEP) {
        let Some(step) = step.first_chunk::<STEP>() else {
            return;
        };
        let ticks = i64::from(i16::from_be_bytes([step[0], step[1]]));
        // Most times advance in steps of 10 µs; some go backwards, and a few jump by years.
        time += match step[2] & 15 {
            0 => ticks << 40,
            1 => ticks * 10_000,
            _ => ticks.abs() * 10_000,
        };
        let (segment, length) = segment(step, &mut edges);
        write(&mut capture, time, &segment, length);
    }
    diagnosis::check(&capture);
});

/// Returns the headers of a segment of one of four connections, and the length of the packet. Its
/// sequence numbers are near the highest that its sender has reached.
fn segment(step: &[u8; STEP], edges: &mut [[u32; 2]; 4]) -> (Vec<u8>, usize) {
    let (port, from) = (step[2] >> 4 & 3, usize::from(step[2] >> 6 & 1));
    let edges = &mut edges[usize::from(port)];
    let (length, unit) = (
        u32::from(step[3]) << (step[4] & 8),
        u32::from(step[4] >> 4) * 362,
    );
    let away = |edge: u32, by: u8| match by {
        127 => edge.wrapping_add(1 << 31),
        128 => edge.wrapping_sub(1 << 30),
        _ => edge.wrapping_add_signed(i32::from(by.cast_signed()) * unit.cast_signed()),
    };
    let (seq, ack) = (away(edges[from], step[5]), away(edges[1 - from], step[6]));
    let flags = step[7];
    let end = seq.wrapping_add(length);
    if end.wrapping_sub(edges[from]) < 1 << 31 {
        edges[from] = end;
    }
    let mut options = vec![];
    if step[8] & 1 == 1 {
        options.extend([8, 10, 0, 0, step[9], step[10], 0, 0, step[11], step[12]]);
    }
    if step[8] & 2 == 2 {
        let blocks = usize::from(step[8] >> 2 & 3);
        options.extend([5, 2 + 8 * blocks as u8]);
        for k in 0..blocks {
            let start = away(ack, step[13].wrapping_add(2 * k as u8));
            options.extend(start.to_be_bytes());
            options.extend(start.wrapping_add(unit).to_be_bytes());
        }
    }
    if step[8] & 16 == 16 {
        options.extend([2, 4, step[9], step[10], 3, 3, step[11], 4, 2]);
    }
    options.truncate(40);
    options.resize(options.len().next_multiple_of(4), 0);
    let header = 20 + options.len();
    let tail = |packet: &mut Vec<u8>| {
        let ports = [[200, port], [0, 80]];
        packet.extend([ports[from], ports[1 - from]].concat());
        packet.extend(seq.to_be_bytes());
        packet.extend(ack.to_be_bytes());
        packet.extend([(header * 4) as u8, flags, step[14], step[15], 0, 0, 0, 0]);
        packet.extend(&options);
    };
    let total = (header as u32 + length).min(65_000) as u16;
    let mut packet = vec![];
    if step[8] & 32 == 0 {
        packet.extend([0x45, 0]);
        packet.extend((total + 20).to_be_bytes());
        packet.extend([step[14], step[13], 0x40, 0, 64, 6, 0, 0]);
        packet.extend([10, 0, 0, 1 + from as u8, 10, 0, 0, 2 - from as u8]);
    } else {
        packet.extend([0x60, 0, 0, 0]);
        packet.extend(total.to_be_bytes());
        packet.extend([6, 64]);
        packet.extend([[0xfd; 15].as_slice(), &[from as u8]].concat());
        packet.extend([[0xfd; 15].as_slice(), &[1 - from as u8]].concat());
    }
    let length = packet.len() + usize::from(total);
    tail(&mut packet);
    (packet, length)
}

fn header() -> Vec<u8> {
    let mut file = 0xa1b2_3c4d_u32.to_le_bytes().to_vec();
    file.extend([2, 0, 4, 0]);
    file.extend([0, 0, SNAPLEN, LINK_TYPE].map(u32::to_le_bytes).concat());
    file
}

fn write(file: &mut Vec<u8>, time: i64, packet: &[u8], length: usize) {
    let kept = packet.len().min(SNAPLEN as usize);
    let nanos = time.rem_euclid(1 << 62);
    let words = [
        nanos / 1_000_000_000,
        nanos % 1_000_000_000,
        kept as i64,
        packet.len() as i64,
    ];
    file.extend(words.map(|word| (word as u32).to_le_bytes()).concat());
    file.extend(&packet[..kept]);
}
