//! TCP headers and options that are read and changed in place.

use anabranch_wire::{
    DecodeError, Flags, SackBlock, TcpHeader, TcpOption, Timestamps, clamp_mss, iter_options,
};
use proptest::prelude::*;

use crate::support::{is_summed, v4, v6, with_options};

/// RFC 9293 §3.1, field by field.
#[test]
fn rfc_9293_the_fields_of_tcp() {
    let octets = [
        0x12, 0x34, 0, 80, 1, 2, 3, 4, 5, 6, 7, 8, 0x61, 0x92, 0xab, 0xcd, 0, 0, 0, 9, 2, 4, 5,
        180, 0xee,
    ];
    let (tcp, length) = TcpHeader::read(&octets).expect("a header");
    assert_eq!((tcp.ports.source, tcp.ports.destination), (0x1234, 80));
    assert_eq!((tcp.seq, tcp.ack), (0x0102_0304, 0x0506_0708));
    assert_eq!(tcp.flags, Flags::AE | Flags::CWR | Flags::ACK | Flags::SYN);
    assert_eq!((tcp.window, tcp.urgent, length), (0xabcd, 9, 24));
    assert_eq!(TcpHeader::options(&octets, length), [2, 4, 5, 180]);
    for len in 0..20 {
        assert_eq!(
            TcpHeader::read(&octets[..len]),
            Err(DecodeError::TcpTruncated)
        );
    }
    assert_eq!(TcpHeader::options(&octets[..22], length), [2, 4]);
    assert!(TcpHeader::options(&octets[..10], length).is_empty());
    let mut short = octets;
    short[12] = 0x40;
    assert_eq!(TcpHeader::read(&short), Err(DecodeError::DataOffset));
}

/// RFC 9293 §3.2, RFC 7323, RFC 2018, RFC 9768. A length that is wrong for the option's kind does
/// not hide the following options; an impossible length does.
#[test]
fn options_are_read_in_order() {
    let options = [
        2, 4, 5, 180, 1, 3, 3, 7, 4, 2, 8, 10, 0, 0, 0, 1, 0, 0, 0, 2, 5, 10, 0, 0, 0, 3, 0, 0, 0,
        4, 77, 3, 9, 2, 3, 5, 172, 2, 3, 1, 6,
    ];
    let read: Vec<_> = iter_options(&options).collect();
    let blocks = [
        SackBlock { left: 3, right: 4 },
        SackBlock::default(),
        SackBlock::default(),
        SackBlock::default(),
    ];
    assert_eq!(
        read[..7],
        [
            Ok(TcpOption::Mss(1460)),
            Ok(TcpOption::Nop),
            Ok(TcpOption::WindowScale(7)),
            Ok(TcpOption::SackPermitted),
            Ok(TcpOption::Timestamps(Timestamps { value: 1, echo: 2 })),
            Ok(TcpOption::Sack(1, blocks)),
            Ok(TcpOption::Unknown {
                kind: 77,
                content: &[9]
            }),
        ]
    );
    assert_eq!(read[7], Err(DecodeError::OptionLength));
    assert!(matches!(read[8], Ok(TcpOption::AccEcn(counts)) if counts.count() == 0));
    assert_eq!(read[9..], [Err(DecodeError::OptionLength)]);
    assert!(iter_options(&[0, 2, 4, 5, 180]).next().is_none());
    for cut in [&[2][..], &[2, 4, 5], &[8, 200]] {
        let read: Vec<_> = iter_options(cut).collect();
        assert_eq!(read, [Err(DecodeError::OptionPastEnd)]);
    }
}

proptest! {
    #[test]
    fn a_clamped_syn_keeps_a_right_checksum(mss: u16, padding in 0_usize..4, limit in 500_u16..1_500, is_syn: bool) {
        let mut options = vec![1; padding];
        options.extend([2, 4]);
        options.extend(mss.to_be_bytes());
        let flags = if is_syn { Flags::SYN } else { Flags::ACK };
        for (ip, at) in [(v4(), 20), (v6(), 40)] {
            let mut packet = with_options(&ip, flags, &options);
            let before = packet.clone();
            let is_lower = is_syn && mss > limit;
            prop_assert_eq!(clamp_mss(&mut packet[at..], limit), is_lower);
            prop_assert!(is_summed(&packet));
            let place = at + 20 + padding + 2;
            let value = u16::from_be_bytes([packet[place], packet[place + 1]]);
            prop_assert_eq!(value, if is_lower { limit } else { mss });
            packet[place..place + 2].copy_from_slice(&before[place..place + 2]);
            packet[at + 16..at + 18].copy_from_slice(&before[at + 16..at + 18]);
            prop_assert_eq!(packet, before);
        }
    }

    #[test]
    fn any_octets_are_a_segment_without_panic(mut octets in prop::collection::vec(any::<u8>(), 0..80), limit: u16) {
        if let Some(flags) = octets.get_mut(13) {
            *flags |= 2;
        }
        if let Ok((_, length)) = TcpHeader::read(&octets) {
            let options = TcpHeader::options(&octets, length);
            prop_assert!(iter_options(options).count() <= options.len());
        }
        let before = octets.clone();
        if !clamp_mss(&mut octets, limit) {
            prop_assert_eq!(octets, before);
        }
    }
}
