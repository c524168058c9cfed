//! Captures as pcapng (draft-ietf-opsawg-pcapng): one interface per direction, nanoseconds, raw IP
//! (LINKTYPE_RAW), names of hosts, and each packet's outcome as its comment.

use core::net::IpAddr;

use anabranch_core::packet::Direction;

use super::{Record, Tap, Taps};

const SECTION_HEADER: u32 = 0x0a0d_0d0a;
const BYTE_ORDER: u32 = 0x1a2b_3c4d;
const INTERFACE: u32 = 1;
const NAMES: u32 = 4;
const PACKET: u32 = 6;
/// LINKTYPE_RAW: the packet begins with its IPv4 or IPv6 header.
const RAW: u16 = 101;

const COMMENT: u16 = 1;
const APPLICATION: u16 = 4;
const INTERFACE_NAME: u16 = 2;
const RESOLUTION: u16 = 9;
/// Timestamps in units of 10^-9 s.
const NANOSECONDS: u8 = 9;
const IPV4_NAME: u16 = 1;
const IPV6_NAME: u16 = 2;

impl Taps {
    /// Returns the capture of the requested directions of a link as the content of a file; `names`
    /// are the elements'. `None` if neither has a tap.
    #[must_use]
    pub fn pcapng(&self, link: usize, which: &[Direction], names: &[Box<str>]) -> Option<Vec<u8>> {
        let here = |tap: &&Tap| tap.place.0 == link && which.contains(&tap.place.1);
        let taps: Vec<&Tap> = self.places.iter().filter(here).collect();
        if taps.is_empty() {
            return None;
        }
        let mut out = Vec::new();
        block(&mut out, SECTION_HEADER, |body| {
            body.extend_from_slice(&BYTE_ORDER.to_le_bytes());
            body.extend_from_slice(&1_u16.to_le_bytes());
            body.extend_from_slice(&0_u16.to_le_bytes());
            // The length of the section is unspecified.
            body.extend_from_slice(&u64::MAX.to_le_bytes());
            option(body, COMMENT, self.title.as_bytes());
            option(
                body,
                APPLICATION,
                concat!("Anabranch ", env!("CARGO_PKG_VERSION")).as_bytes(),
            );
            option(body, 0, &[]);
        });
        for tap in &taps {
            block(&mut out, INTERFACE, |body| {
                body.extend_from_slice(&RAW.to_le_bytes());
                body.extend_from_slice(&[0, 0]);
                body.extend_from_slice(&self.snap_length.to_le_bytes());
                option(body, INTERFACE_NAME, tap.name.as_bytes());
                option(body, RESOLUTION, &[NANOSECONDS]);
                option(body, 0, &[]);
            });
        }
        block(&mut out, NAMES, |body| {
            for (name, addresses) in &self.nodes {
                for address in addresses {
                    let (kind, mut record) = match address {
                        IpAddr::V4(address) => (IPV4_NAME, address.octets().to_vec()),
                        IpAddr::V6(address) => (IPV6_NAME, address.octets().to_vec()),
                    };
                    record.extend_from_slice(name.as_bytes());
                    record.push(0);
                    option(body, kind, &record);
                }
            }
            option(body, 0, &[]);
        });
        let mut order: Vec<(u32, &Tap, &Record)> = (0..)
            .zip(&taps)
            .flat_map(|(interface, tap)| {
                tap.records
                    .iter()
                    .map(move |record| (interface, *tap, record))
            })
            .collect();
        order.sort_by_key(|(interface, _, record)| (record.at, *interface));
        // The outcomes of each tap, grouped by record; within a record, in order of observation.
        let fates: Vec<Vec<_>> = taps
            .iter()
            .map(|tap| {
                let mut fates = tap.fates.clone();
                fates.sort_by_key(|(record, ..)| *record);
                fates
            })
            .collect();
        let mut next = vec![0_u32; taps.len()];
        for (interface, tap, record) in order {
            let slot = interface as usize;
            // The records of a tap are in order of time, so their numbers increase.
            let number = next[slot];
            next[slot] += 1;
            let first = fates[slot].partition_point(|(at, ..)| *at < number);
            let last = fates[slot].partition_point(|(at, ..)| *at <= number);
            let comment = self.words(record, &fates[slot][first..last], names);
            packet(&mut out, interface, tap, record, &comment);
        }
        Some(out)
    }
}

fn packet(out: &mut Vec<u8>, interface: u32, tap: &Tap, record: &Record, comment: &str) {
    block(out, PACKET, |body| {
        let nanos = record.at.as_picos() / 1000;
        let captured = &tap.octets[record.start..][..record.captured as usize];
        body.extend_from_slice(&interface.to_le_bytes());
        let [high, low] = [nanos >> 32, nanos & 0xffff_ffff];
        for half in [high, low] {
            body.extend_from_slice(&u32::try_from(half).expect("a half").to_le_bytes());
        }
        body.extend_from_slice(&record.captured.to_le_bytes());
        body.extend_from_slice(&record.len.to_le_bytes());
        body.extend_from_slice(captured);
        pad(body, captured.len());
        option(body, COMMENT, comment.as_bytes());
        option(body, 0, &[]);
    });
}

/// A block: type, length, body, length.
fn block(out: &mut Vec<u8>, kind: u32, fill: impl FnOnce(&mut Vec<u8>)) {
    let start = out.len();
    out.extend_from_slice(&kind.to_le_bytes());
    out.extend_from_slice(&[0; 4]);
    fill(out);
    let len = u32::try_from(out.len() - start + 4).expect("a block is far below 4 GiB");
    out[start + 4..start + 8].copy_from_slice(&len.to_le_bytes());
    out.extend_from_slice(&len.to_le_bytes());
}

/// An option, or a record of the name block, which has the same layout.
fn option(out: &mut Vec<u8>, code: u16, value: &[u8]) {
    // A value that exceeds its field is truncated; only a name or a title can exceed it.
    let value = &value[..value.len().min(usize::from(u16::MAX))];
    out.extend_from_slice(&code.to_le_bytes());
    out.extend_from_slice(
        &u16::try_from(value.len())
            .expect("it was cut")
            .to_le_bytes(),
    );
    out.extend_from_slice(value);
    pad(out, value.len());
}

/// Pads to the next multiple of four.
fn pad(out: &mut Vec<u8>, len: usize) {
    out.resize(out.len() + len.next_multiple_of(4) - len, 0);
}
