//! Any octets as inner packets: nothing panics, and packets that one end accepts leave the other
//! unchanged, except for the MSS option.
#![cfg_attr(feature = "libfuzzer", no_main)]

mod gateway_peer;

use anabranch_core::units::Duration;
use anabranch_fuzz::fuzz_target;
use anabranch_gateway::inner::{clamp_mss, length, read};
use anabranch_gateway::time::Instant;
use gateway_peer::{route, tunnel};

fuzz_target!(|input: &[u8]| {
    let mut ends = [tunnel(1, 2, true), tunnel(2, 1, false)];
    let (mut now, mut buffer) = (Instant::START, Vec::new());
    let (mut taken, mut given) = (Vec::new(), Vec::new());
    let mut rest = input;
    for _ in 0..6 {
        let size = rest
            .first()
            .map_or(0, |&size| usize::from(size))
            .min(rest.len());
        let (packet, after) = rest.split_at(size);
        rest = after;
        let mut packet = packet.to_vec();
        // The first octet selected the size. Most packets get correct length fields.
        if size > 20 && packet[1] & 3 != 3 {
            let (version, at, headers) = if packet[1] & 1 == 0 {
                (0x45, 2, 0)
            } else {
                (0x60, 4, 40)
            };
            packet[0] = version | packet[1] >> 6 & 1;
            let octets = u16::try_from(size.saturating_sub(headers)).unwrap_or(0);
            packet[at..at + 2].copy_from_slice(&octets.to_be_bytes());
        }
        let mut clamped = packet.clone();
        if let Some(summary) = read(&packet) {
            assert_eq!(length(&packet), Some(packet.len()));
            clamp_mss(&mut clamped, &summary, ends[0].inner_mtu());
        }
        if ends[0].handle_inner(packet, now).is_ok() {
            taken.push(clamped);
        }
        for _ in 0..4 {
            now = now + Duration::from_millis(10);
            for end in 0..2 {
                while ends[end].poll_transmit(now, &mut buffer).is_some() {
                    ends[1 - end].handle(&mut buffer, route(), now, now);
                }
            }
            given.extend(std::iter::from_fn(|| ends[1].poll_deliver(now)));
        }
    }
    taken.sort();
    given.sort();
    assert_eq!(taken, given);
});
