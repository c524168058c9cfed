//! Writes a capture as pcapng with comments (draft-ietf-opsawg-pcapng): one on the file, and some
//! on frames.
//!
//! Frames keep their number, time, link type and captured bytes. A damaged capture is written up to
//! the damage.
//!
//! # Not implemented
//! - Comments, names and options of the original.
//! - Frames with more than 256 KiB captured: the rest is left out.

use std::{
    collections::BTreeMap,
    io::{Read, Write},
};

use crate::{
    Error, Limits, Reader,
    container::{Link, PICOS},
    reader::RawFrame,
};

const SECTION_HEADER: u32 = 0x0a0d_0d0a;
const BYTE_ORDER: u32 = 0x1a2b_3c4d;
const INTERFACE: u32 = 1;
const PACKET: u32 = 6;
const COMMENT: u16 = 1;
const APPLICATION: u16 = 4;
const RESOLUTION: u16 = 9;
const CHECK_LENGTH: u16 = 13;
/// Timestamps in units of 10^-9 s.
const NANOSECONDS: u8 = 9;
/// Maximum bytes of a comment; an option has room for 65,535.
const LONGEST: usize = 60_000;

/// Writes the capture as pcapng with a comment on the whole file and on the frames numbered in
/// `comments`. `stop` is polled every 64 KiB; reading ends with an error once it returns true.
///
/// # Errors
/// If it is no capture, reading is interrupted, or it cannot be written.
pub fn annotate(
    file: impl Read,
    mut out: impl Write,
    title: &str,
    comments: &BTreeMap<u64, String>,
    stop: impl Fn() -> bool,
) -> Result<(), Error> {
    let mut reader = Reader::open_within(file, Limits::NONE, stop)?;
    let mut block = Vec::new();
    section(&mut block, title);
    let mut links: Vec<Link> = Vec::new();
    let mut time = 0;
    loop {
        match reader.next_frame() {
            Ok(Some(RawFrame {
                number,
                frame,
                octets,
            })) => {
                let known = links.iter().position(|link| *link == frame.link);
                let interface = known.unwrap_or_else(|| {
                    describe(&mut block, frame.link);
                    links.push(frame.link);
                    links.len() - 1
                });
                // A frame without a time gets that of the previous frame.
                time = frame.time.map_or(time, |picos| {
                    u64::try_from(picos / (PICOS / 1_000_000_000)).unwrap_or_default()
                });
                let lengths = [octets.len().try_into().unwrap_or(u32::MAX), frame.length];
                let comment = comments.get(&number).map(String::as_str);
                packet(&mut block, interface, time, lengths, octets, comment);
            }
            Err(error @ (Error::Interrupted | Error::System(_))) => return Err(error),
            Ok(None) | Err(_) => break,
        }
        write(&mut out, &block)?;
        block.clear();
    }
    write(&mut out, &block)?;
    out.flush().map_err(|error| unwritable(&error))
}

fn write(out: &mut impl Write, octets: &[u8]) -> Result<(), Error> {
    out.write_all(octets).map_err(|error| unwritable(&error))
}

fn unwritable(error: &std::io::Error) -> Error {
    Error::Unwritable {
        number: error.raw_os_error(),
        why: error.to_string(),
    }
}

fn section(out: &mut Vec<u8>, title: &str) {
    enclosed(out, SECTION_HEADER, |body| {
        body.extend_from_slice(&BYTE_ORDER.to_le_bytes());
        body.extend_from_slice(&[1, 0, 0, 0]);
        // The section length is unspecified.
        body.extend_from_slice(&u64::MAX.to_le_bytes());
        option(body, COMMENT, shortened(title).as_bytes());
        let application = concat!("Anabranch ", env!("CARGO_PKG_VERSION"));
        option(body, APPLICATION, application.as_bytes());
        option(body, 0, &[]);
    });
}

fn describe(out: &mut Vec<u8>, link: Link) {
    enclosed(out, INTERFACE, |body| {
        body.extend_from_slice(&link.link_type.to_le_bytes());
        // Reserved, and no snap length.
        body.extend_from_slice(&[0; 6]);
        option(body, RESOLUTION, &[NANOSECONDS]);
        if let Ok(bits) = u8::try_from(link.fcs * 8)
            && bits > 0
        {
            option(body, CHECK_LENGTH, &[bits]);
        }
        option(body, 0, &[]);
    });
}

fn packet(
    out: &mut Vec<u8>,
    interface: usize,
    time: u64,
    lengths: [u32; 2],
    octets: &[u8],
    comment: Option<&str>,
) {
    enclosed(out, PACKET, |body| {
        let interface = u32::try_from(interface).unwrap_or_default();
        body.extend_from_slice(&interface.to_le_bytes());
        body.extend_from_slice(&time.to_le_bytes()[4..]);
        body.extend_from_slice(&time.to_le_bytes()[..4]);
        for length in lengths {
            body.extend_from_slice(&length.to_le_bytes());
        }
        body.extend_from_slice(octets);
        pad(body);
        if let Some(comment) = comment {
            option(body, COMMENT, shortened(comment).as_bytes());
            option(body, 0, &[]);
        }
    });
}

fn shortened(text: &str) -> &str {
    let mut end = text.len().min(LONGEST);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

/// Writes a block: type, length, body, and the length again.
fn enclosed(out: &mut Vec<u8>, kind: u32, fill: impl FnOnce(&mut Vec<u8>)) {
    let mut body = Vec::new();
    fill(&mut body);
    let length = u32::try_from(body.len() + 12).unwrap_or(u32::MAX);
    out.extend_from_slice(&kind.to_le_bytes());
    out.extend_from_slice(&length.to_le_bytes());
    out.extend_from_slice(&body);
    out.extend_from_slice(&length.to_le_bytes());
}

fn option(body: &mut Vec<u8>, code: u16, value: &[u8]) {
    let length = u16::try_from(value.len()).unwrap_or(u16::MAX);
    body.extend_from_slice(&code.to_le_bytes());
    body.extend_from_slice(&length.to_le_bytes());
    body.extend_from_slice(value);
    pad(body);
}

/// Pads the body with zeros to a multiple of four bytes.
fn pad(body: &mut Vec<u8>) {
    body.resize(body.len().next_multiple_of(4), 0);
}
