//! gzip and zstd: whole, in parts, truncated and damaged.

use std::io::Write;

use anabranch_capture::{Error, Limits, Reader};
use flate2::{Compression, write::GzEncoder};
use ruzstd::encoding::{CompressionLevel, compress_to_vec};

use crate::make::{lengths, plain, read, v4};

fn gzip(content: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(content).expect("it is memory");
    encoder.finish().expect("it is memory")
}

fn zstd(content: &[u8]) -> Vec<u8> {
    compress_to_vec(content, CompressionLevel::Fastest)
}

fn capture() -> Vec<u8> {
    let packets: Vec<_> = (0..2_000_u32)
        .map(|k| {
            let mut packet = v4(u16::try_from(40 + k % 1_400).expect("small"));
            // So that it does not shrink to nothing.
            for (k, octet) in (k..).zip(packet.iter_mut().skip(24)) {
                *octet = k.wrapping_mul(2_654_435_761).to_be_bytes()[0];
            }
            packet
        })
        .collect();
    plain(101, &packets)
}

#[test]
fn compressed_captures_give_the_same_packets() {
    let file = capture();
    let expected = read(&file);
    for compressed in [gzip(&file), zstd(&file)] {
        assert!(compressed.len() < file.len());
        assert_eq!(read(&compressed), expected);
    }
}

/// Concatenated gzip members and zstd frames, also skippable frames (RFC 8878 §3.1.2).
#[test]
fn compressed_captures_in_parts() {
    let file = capture();
    let (one, two) = file.split_at(file.len() / 3);
    let skippable = [&[0x51, 0x2a, 0x4d, 0x18, 3, 0, 0, 0][..], b"xyz"].concat();
    for parts in [
        [gzip(one), gzip(two)].concat(),
        [zstd(one), skippable.clone(), zstd(two), skippable].concat(),
    ] {
        assert_eq!(read(&parts), read(&file));
    }
}

#[test]
fn a_truncated_compressed_capture_gives_its_whole_packets() {
    let file = capture();
    let all = lengths(&file);
    for (compressed, at_least) in [(gzip(&file), 900), (zstd(&file), 1)] {
        let (packets, counts) = read(&compressed[..compressed.len() / 2]);
        assert!(counts.is_cut_off);
        assert!(
            (at_least..all.len()).contains(&packets.len()),
            "{}",
            packets.len()
        );
        let lengths: Vec<_> = packets.iter().map(|packet| packet.1).collect();
        assert_eq!(lengths, all[..packets.len()]);
    }
}

#[test]
fn a_damaged_compressed_capture_is_refused() {
    let file = capture();
    for (mut compressed, name) in [(gzip(&file), "gzip"), (zstd(&file), "zstd")] {
        let middle = compressed.len() / 2;
        compressed[middle..middle + 64].fill(0xff);
        let mut reader = Reader::open(&compressed[..]).expect("it begins well");
        let error = loop {
            match reader.next_packet() {
                Ok(Some(_)) => {}
                Ok(None) => panic!("{name}: damage goes unnoticed"),
                Err(error) => break error,
            }
        };
        let right = matches!(error, Error::Compression { format, .. } if format == name);
        assert!(
            right || matches!(error, Error::Broken { .. }),
            "{name}: {error}"
        );
    }
}

#[test]
fn compressed_data_that_is_no_capture_is_refused() {
    for compressed in [gzip(b"duration"), zstd(b"duration"), gzip(b"")] {
        let error = Reader::open(&compressed[..]).err();
        assert_eq!(error, Some(Error::NotACapture));
    }
}

/// A few bytes expand to an unlimited number of zeros; neither time nor memory may grow with them.
#[test]
fn a_bomb_is_refused() {
    let bomb = gzip(&vec![0; 64 << 20]);
    assert!(bomb.len() < 1 << 20);
    assert_eq!(Reader::open(&bomb[..]).err(), Some(Error::NotACapture));
}

/// Reads to the end. Returns the number of frames and the final error.
fn read_within(file: &[u8], limits: Limits) -> (u64, Option<Error>) {
    let mut reader = Reader::open_within(file, limits, || false).expect("a capture");
    let error = loop {
        match reader.next_packet() {
            Ok(Some(_)) => {}
            Ok(None) => break None,
            Err(error) => break Some(error),
        }
    };
    (reader.counts().frames, error)
}

/// Builds a zstd frame: literal octets, then blocks of 128 KiB of zeros in four octets each
/// (RFC 8878 §3.1.1.2).
fn zstd_zeros(head: &[u8], blocks: usize) -> Vec<u8> {
    let length = u8::try_from(head.len() << 3).expect("few");
    let mut frame = vec![0x28, 0xb5, 0x2f, 0xfd, 0, 0x58, length, 0, 0];
    frame.extend(head);
    for left in (0..blocks).rev() {
        let last = u8::from(left == 0);
        // Type 1 repeats an octet; the length follows from bit 3 on.
        frame.extend([last | 1 << 1, 0, 0x10, 0]);
    }
    frame
}

/// Zeros are empty records, which compress a thousandfold.
#[test]
fn a_capture_that_expands_without_end_is_refused_unless_it_is_permitted() {
    const BLOCKS: usize = 400;
    let head = plain(101, &[]);
    let file = [head.clone(), vec![0; BLOCKS << 17]].concat();
    let frames = (BLOCKS as u64) << 13;
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(&file).expect("it is memory");
    let gzip = encoder.finish().expect("it is memory");
    for bomb in [gzip, zstd_zeros(&head, BLOCKS)] {
        assert!(bomb.len() < file.len() / 900);
        let (read, error) = read_within(&bomb, Limits::default());
        assert!(read < frames * 7 / 10, "{read}");
        assert!(
            matches!(error, Some(Error::Expands { times: 256, .. })),
            "{error:?}"
        );
        assert_eq!(read_within(&bomb, Limits::NONE), (frames, None));
    }
    // Without compression, the expansion limit does not apply.
    assert_eq!(read_within(&file, Limits::default()), (frames, None));
}

/// Transferred zeros fill large frames, but no two headers are equal.
#[test]
fn a_transfer_of_zeros_is_read() {
    let packets: Vec<_> = (0..60_000_u32)
        .map(|k| {
            let mut packet = v4(1500);
            let numbers = [k, k.wrapping_mul(1448), k.wrapping_mul(2_654_435_761)];
            let octets = numbers.into_iter().flat_map(u32::to_be_bytes);
            for (octet, number) in packet.iter_mut().skip(20).zip(octets) {
                *octet = number;
            }
            packet
        })
        .collect();
    let file = plain(101, &packets);
    for compressed in [gzip(&file), zstd(&file)] {
        assert!(file.len() / compressed.len() > 20);
        assert_eq!(read_within(&compressed, Limits::default()), (60_000, None));
    }
}

/// Gzip members of three bytes each, and records longer than a chunk.
#[test]
fn members_of_a_byte_each_are_read_in_linear_time() {
    let file = plain(101, &[v4(30_000), v4(30_000)]);
    let members: Vec<_> = file.chunks(3).flat_map(gzip).collect();
    assert_eq!(read(&members), read(&file));
}

/// Compressed by gzip(1).
#[test]
fn a_capture_compressed_by_gzip() {
    let (packets, counts) = read(include_bytes!("../data/ethernet.pcap.gz"));
    let data = packets.iter().filter(|packet| packet.1 > 100).count();
    assert_eq!((data, packets.len(), counts.frames), (20, 40, 40));
}

/// As gzip(1) does: tape padding and appended data.
#[test]
fn bytes_after_gzip_are_ignored_and_counted() {
    let file = capture();
    let (packets, _) = read(&file);
    for (rest, of_other) in [
        (vec![0; 1], 1),
        (vec![0; 100_000], 100_000),
        (b"junk".to_vec(), 4),
        (vec![0x1f], 1),
        ([&[0; 512][..], &gzip(&file)].concat(), 0),
    ] {
        let (found, counts) = read(&[gzip(&file), rest.clone()].concat());
        assert_eq!(found, packets);
        let expected = if of_other == 0 { rest.len() } else { of_other };
        assert_eq!(counts.trailing, expected as u64);
        assert!(!counts.is_cut_off);
    }
    let (_, counts) = read(&gzip(&file));
    assert_eq!(counts.trailing, 0);
}
