//! Any bytes: never a panic, and no more packets than bytes.

use anabranch_capture::Reader;
use proptest::{collection::vec, prelude::*};

use crate::make::{MICROS, Order, enhanced, ethernet, frames, interface, pcap, section, v4, v6};

/// Reads to the end or the first error.
fn exhaust(file: &[u8]) -> u64 {
    let Ok(mut reader) = Reader::open(file) else {
        return 0;
    };
    while let Ok(Some(packet)) = reader.next_packet() {
        assert!(packet.octets.len() <= packet.frame_length as usize);
        assert!(packet.ip.length >= 20);
    }
    reader.counts().frames
}

proptest! {
    #[test]
    fn nothing_panics_on_any_bytes(bytes in vec(any::<u8>(), 0..2_000)) {
        prop_assert!(exhaust(&bytes) <= bytes.len() as u64);
    }

    #[test]
    fn nothing_panics_on_any_frame(
        link_type in prop_oneof![0..300_u32, any::<u32>()],
        frame in vec(any::<u8>(), 0..200),
    ) {
        prop_assert_eq!(exhaust(&pcap(Order::Big, MICROS, link_type, &frames(&[frame]))), 1);
    }

    /// A frame of a known kind, with random contents after the first header.
    #[test]
    fn nothing_panics_after_a_known_beginning(
        kind in prop::sample::select(vec![0x0800_u16, 0x86dd, 0x8100, 0x8847, 0x8864, 0x6558, 0x880b, 30]),
        first in prop::sample::select(vec![0x45_u8, 0x4f, 0x60, 0, 0xff]),
        protocol in prop::sample::select(vec![4_u8, 6, 41, 44, 47, 51, 0, 137]),
        mut rest in vec(any::<u8>(), 0..120),
    ) {
        if let Some(begin) = rest.first_mut() {
            *begin = first;
        }
        if let Some(field) = rest.get_mut(9) {
            *field = protocol;
        }
        if let Some(field) = rest.get_mut(6) {
            *field = protocol;
        }
        exhaust(&pcap(Order::Little, MICROS, 1, &frames(&[ethernet(kind, &rest)])));
    }

    #[test]
    fn nothing_panics_on_damaged_captures(
        damage in vec((0..2_000_usize, any::<u8>()), 1..8),
        cut in 0..2_000_usize,
    ) {
        let order = Order::Little;
        let pcap = pcap(order, MICROS, 1, &frames(&[ethernet(0x0800, &v4(100)), ethernet(0x86dd, &v6(300))]));
        let ng = [
            section(order),
            interface(order, 101, &[(9, vec![9]), (14, vec![1; 8])]),
            enhanced(order, 0, 1 << 40, &v4(100)),
            enhanced(order, 0, 1 << 41, &v6(300)),
        ];
        for mut file in [pcap, ng.concat()] {
            for (at, octet) in &damage {
                let at = at % file.len();
                file[at] = *octet;
            }
            file.truncate(file.len() - cut % file.len());
            exhaust(&file);
        }
    }
}
