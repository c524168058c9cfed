//! Encoding and decoding of segments, compared with another implementation, and with bad input.

use anabranch_core::{
    body::{Body, Length, Octets},
    packet::Ecn,
};
use anabranch_wire::{
    self as wire, AccEcn, DecodeError, Discards, EncodeError, FastOpen, Flags, IpHeader, Options,
    Ports, Prefix, SackBlock, Segment, TcpOption, Timestamps, Version,
    accecn::{Counter, Order},
};
use proptest::prelude::*;

use crate::support::{PORTS, v4, v6, with_options};

fn segment<B: Body>(flags: Flags, body: B) -> Segment<B> {
    Segment {
        seq: 0xffff_fff0,
        ack: 3,
        window: 1000,
        flags,
        timestamps: None,
        options: Options::None,
        body,
    }
}

fn encoded<B: Body>(ip: &IpHeader, segment: &Segment<B>) -> Vec<u8> {
    let mut out = Vec::new();
    wire::encode(ip, PORTS, segment, &mut out).expect("it fits");
    out
}

fn any_ecn() -> impl Strategy<Value = Ecn> {
    any::<u8>().prop_map(Ecn::from_bits)
}

fn any_ip() -> impl Strategy<Value = IpHeader> {
    let v4 = (
        any::<[u8; 4]>(),
        any::<[u8; 4]>(),
        any::<u16>(),
        any::<bool>(),
    )
        .prop_map(
            |(source, destination, identification, dont_fragment)| Version::V4 {
                source,
                destination,
                identification,
                dont_fragment,
            },
        );
    let v6 = (any::<[u8; 16]>(), any::<[u8; 16]>(), 0_u32..1 << 20).prop_map(
        |(source, destination, flow_label)| Version::V6 {
            source,
            destination,
            flow_label,
        },
    );
    (prop_oneof![v4, v6], 0_u8..64, any_ecn(), any::<u8>()).prop_map(
        |(version, dscp, ecn, hop_limit)| IpHeader {
            version,
            dscp,
            ecn,
            hop_limit,
        },
    )
}

fn any_fast_open() -> impl Strategy<Value = FastOpen> {
    let cookie = prop::collection::vec(any::<u8>(), 0..=16);
    (cookie, any::<bool>()).prop_filter_map("a length of no cookie", |(cookie, experimental)| {
        FastOpen::new(&cookie).map(|option| option.experimental(experimental))
    })
}

fn any_accecn() -> impl Strategy<Value = AccEcn> {
    let order = prop_oneof![Just(Order::Ect0First), Just(Order::Ect1First)];
    (order, prop::collection::vec(any::<u32>(), 0..=3))
        .prop_map(|(order, fields)| AccEcn::new(order, &fields))
}

/// Compatible flags and options, timestamps, and whether all fit into the header.
fn any_dress() -> impl Strategy<Value = (Flags, Options, Option<Timestamps>)> {
    let syn = (
        any::<u16>(),
        prop::option::of(any::<u8>()),
        any::<bool>(),
        prop::option::of(any_accecn()),
        prop::option::of(any_fast_open()),
    )
        .prop_map(
            |(mss, window_scale, sack_permitted, accecn, fast_open)| Options::Syn {
                mss,
                window_scale,
                sack_permitted,
                // Both may leave no room for the other options.
                accecn: accecn.filter(|_| fast_open.is_none()),
                fast_open,
            },
        );
    let block = (any::<u32>(), any::<u32>()).prop_map(|(left, right)| SackBlock { left, right });
    let blocks = (1_u8..=4, prop::array::uniform4(block)).prop_map(|(n, mut blocks)| {
        blocks[usize::from(n)..].fill(SackBlock::default());
        (n, blocks)
    });
    let sack = (blocks, prop::option::of(any_accecn())).prop_map(|((n, blocks), accecn)| {
        let [a, b, c, _] = blocks;
        match accecn {
            Some(accecn) if n < 4 => Options::SackAccEcn(n, [a, b, c], accecn),
            _ => Options::Sack(n, blocks),
        }
    });
    let timestamps =
        (any::<u32>(), any::<u32>()).prop_map(|(value, echo)| Timestamps { value, echo });
    (
        0_u16..512,
        prop_oneof![
            Just(Options::None),
            any_accecn().prop_map(Options::AccEcn),
            syn,
            sack
        ],
        prop::option::of(timestamps),
    )
        .prop_map(|(flags, options, timestamps)| {
            let flags = match options {
                Options::Syn { accecn, .. } => {
                    // Only a SYN-ACK has counters.
                    let answers = u16::from(accecn.is_some()) * Flags::ACK.0;
                    flags | Flags::SYN.0 | answers
                }
                Options::Sack(..) | Options::SackAccEcn(..) => flags & !Flags::SYN.0,
                Options::AccEcn(_) => flags | Flags::ACK.0,
                Options::None => flags,
            };
            let room = options.size() + 12 <= 40;
            (Flags(flags), options, timestamps.filter(|_| room))
        })
}

prop_compose! {
    fn any_segment()(
        (flags, options, timestamps) in any_dress(),
        (seq, ack, window) in any::<(u32, u32, u16)>(),
        body in prop::collection::vec(any::<u8>(), 0..200),
    ) -> Segment<Octets> {
        Segment { seq, ack, window, flags, timestamps, options, body: Octets(body) }
    }
}

proptest! {
    #[test]
    fn a_segment_comes_back_as_it_was(ip in any_ip(), source: u16, destination: u16, segment in any_segment()) {
        let ports = Ports { source, destination };
        let mut out = vec![0xee; 5];
        wire::encode(&ip, ports, &segment, &mut out).expect("it fits");
        let packet = &out[5..];
        let longer = ip.version.header_len() - 20;
        prop_assert_eq!(packet.len(), segment.ip_size() as usize + longer);
        let decoded = wire::decode(packet).expect("it is right");
        prop_assert_eq!(decoded.segment, segment);
        prop_assert_eq!((decoded.ip, decoded.ports, decoded.skipped_options), (ip, ports, 0));
    }

    #[test]
    fn lengths_travel_as_zeros(segment in any_segment(), most in 0_usize..300) {
        let zeros = Segment { body: Octets(vec![0; segment.body.0.len()]), ..segment.clone() };
        let lengths = Segment {
            seq: segment.seq, ack: segment.ack, window: segment.window, flags: segment.flags,
            timestamps: segment.timestamps, options: segment.options, body: Length(segment.body.len()),
        };
        let whole = encoded(&v4(), &zeros);
        prop_assert_eq!(&encoded(&v4(), &lengths), &whole);
        // The first octets of the packet, as in a capture with a snap length.
        let mut prefix = Vec::new();
        let to = Prefix { octets: &mut prefix, most };
        let len = wire::encode_prefix(&v4(), PORTS, &lengths, to).expect("it fits");
        prop_assert_eq!(len as usize, whole.len());
        prop_assert_eq!(&prefix[..], &whole[..most.min(whole.len())]);
    }

    /// `etherparse` reads the values that were written, checksums included.
    #[test]
    fn another_parser_reads_the_same(ip in any_ip(), segment in any_segment()) {
        // `etherparse` supports neither AccECN nor Fast Open.
        let known = match segment.options {
            Options::AccEcn(_) => Options::None,
            Options::SackAccEcn(n, [a, b, c], _) => Options::Sack(n, [a, b, c, SackBlock::default()]),
            Options::Syn { mss, window_scale, sack_permitted, .. } => {
                Options::Syn { mss, window_scale, sack_permitted, accecn: None, fast_open: None }
            }
            other => other,
        };
        let segment = Segment { options: known, ..segment };
        let packet = encoded(&ip, &segment);
        let parsed = etherparse::SlicedPacket::from_ip(&packet).expect("it is right");
        let Some(etherparse::TransportSlice::Tcp(tcp)) = parsed.transport else { panic!("TCP") };
        let header = tcp.to_header();
        let sum = match (&ip.version, &parsed.net) {
            (Version::V4 { source, destination, identification, dont_fragment }, Some(etherparse::NetSlice::Ipv4(v4))) => {
                let v4 = v4.header();
                prop_assert_eq!((v4.source(), v4.destination()), (*source, *destination));
                prop_assert_eq!((v4.identification(), v4.dont_fragment()), (*identification, *dont_fragment));
                prop_assert_eq!((v4.dcp().value(), v4.ecn().value()), (ip.dscp, ip.ecn as u8));
                prop_assert_eq!(v4.ttl(), ip.hop_limit);
                prop_assert_eq!(v4.header_checksum(), v4.to_header().calc_header_checksum());
                header.calc_checksum_ipv4_raw(*source, *destination, &segment.body.0)
            }
            (Version::V6 { source, destination, flow_label }, Some(etherparse::NetSlice::Ipv6(v6))) => {
                let v6 = v6.header();
                prop_assert_eq!((v6.source(), v6.destination()), (*source, *destination));
                prop_assert_eq!(v6.flow_label().value(), *flow_label);
                prop_assert_eq!((v6.traffic_class(), v6.hop_limit()), (ip.dscp << 2 | ip.ecn as u8, ip.hop_limit));
                header.calc_checksum_ipv6_raw(*source, *destination, &segment.body.0)
            }
            other => panic!("{other:?}"),
        };
        prop_assert_eq!(Ok(header.checksum), sum);
        let bits = [header.fin, header.syn, header.rst, header.psh, header.ack, header.urg, header.ece, header.cwr, header.ns];
        let flags = bits.iter().enumerate().fold(0, |flags, (bit, &on)| flags | u16::from(on) << bit);
        prop_assert_eq!(flags, segment.flags.0);
        prop_assert_eq!((header.sequence_number, header.acknowledgment_number, header.window_size), (segment.seq, segment.ack, segment.window));
        let ours: Vec<_> = wire::iter_options(tcp.options()).collect::<Result<_, _>>().expect("they are right");
        let theirs: Vec<_> = header.options_iterator().collect::<Result<_, _>>().expect("they are right");
        prop_assert_eq!(ours.len(), theirs.len());
        for (ours, theirs) in ours.iter().zip(&theirs) {
            use etherparse::TcpOptionElement as E;
            let same = match (ours, theirs) {
                (TcpOption::Nop, E::Noop) | (TcpOption::SackPermitted, E::SelectiveAcknowledgementPermitted) => true,
                (TcpOption::Mss(a), E::MaximumSegmentSize(b)) => a == b,
                (TcpOption::WindowScale(a), E::WindowScale(b)) => a == b,
                (TcpOption::Timestamps(a), E::Timestamp(value, echo)) => (a.value, a.echo) == (*value, *echo),
                (TcpOption::Sack(n, blocks), E::SelectiveAcknowledgement(first, more)) => {
                    let theirs: Vec<_> = std::iter::once(*first).chain(more.iter().flatten().copied()).collect();
                    let ours: Vec<_> = blocks[..usize::from(*n)].iter().map(|b| (b.left, b.right)).collect();
                    ours == theirs
                }
                _ => false,
            };
            prop_assert!(same, "{ours:?} {theirs:?}");
        }
    }

    /// Any octets give a result or an error, and decoded segments survive encoding and decoding.
    #[test]
    fn any_octets_decode_or_give_an_error(octets in prop::collection::vec(any::<u8>(), 0..120)) {
        let _ = wire::decode(&octets);
    }

    #[test]
    fn any_options_decode_or_give_an_error(flags in 0_u16..512, options in prop::collection::vec(any::<u8>(), 0..=40)) {
        let packet = with_options(&v4(), Flags(flags), &options);
        match wire::decode(&packet) {
            Ok(decoded) => {
                prop_assert_eq!(&decoded.segment.body.0, b"abc");
                let mut again = Vec::new();
                match wire::encode(&decoded.ip, decoded.ports, &decoded.segment, &mut again) {
                    Ok(()) => {
                        let twice = wire::decode(&again).expect("we wrote it");
                        prop_assert_eq!(twice.segment, decoded.segment);
                    }
                    // Tightly packed options can hold more than our padding leaves room for.
                    Err(error) => prop_assert!(matches!(error, EncodeError::Options(_))),
                }
            }
            Err(error) => prop_assert!(matches!(error, DecodeError::OptionLength | DecodeError::OptionPastEnd)),
        }
    }

    /// One's complement sums detect every single-bit error.
    #[test]
    fn a_changed_bit_is_noticed(segment in any_segment(), at: prop::sample::Index, bit in 0_u8..8) {
        let mut packet = encoded(&v4(), &segment);
        let place = at.index(packet.len());
        packet[place] ^= 1 << bit;
        prop_assert!(wire::decode(&packet).is_err(), "octet {place}");
    }

    #[test]
    fn a_cut_packet_is_noticed(ip in any_ip(), segment in any_segment(), at: prop::sample::Index) {
        let packet = encoded(&ip, &segment);
        let cut = &packet[..at.index(packet.len())];
        let error = wire::decode(cut).expect_err("a part is missing");
        prop_assert!(matches!(error, DecodeError::IpTruncated | DecodeError::IpLength), "{error}");
    }

    #[test]
    fn octets_after_the_packet_are_ignored(segment in any_segment(), padding in 1_usize..50) {
        let mut packet = encoded(&v6(), &segment);
        packet.resize(packet.len() + padding, 0xaa);
        prop_assert_eq!(wire::decode(&packet).expect("it is right").segment, segment);
    }
}

#[test]
fn a_syn_in_octets() {
    let syn = Segment {
        seq: 0x0102_0304,
        ack: 0,
        window: 0xffff,
        flags: Flags::SYN | Flags::AE | Flags::CWR | Flags::ECE,
        timestamps: Some(Timestamps { value: 9, echo: 0 }),
        options: Options::Syn {
            mss: 1460,
            window_scale: Some(7),
            sack_permitted: true,
            accecn: None,
            fast_open: None,
        },
        body: Length(0),
    };
    let packet = encoded(&v4(), &syn);
    assert_eq!(packet[..2], [0x45, 0]);
    assert_eq!(packet[8..10], [64, 6]);
    // Offset 11 words, AE in the lowest bit; CWR, ECE, SYN.
    assert_eq!(packet[32..34], [0xb1, 0xc2]);
    let options = [
        2, 4, 5, 180, 4, 2, 3, 3, 7, 1, 1, 1, 1, 1, 8, 10, 0, 0, 0, 9, 0, 0, 0, 0,
    ];
    assert_eq!(packet[40..], options);
}

#[test]
fn rfc_9768_figure_4_the_option_in_octets() {
    let mut counts = segment(Flags::ACK, Length(0));
    counts.options = Options::AccEcn(AccEcn::new(
        Order::Ect0First,
        &[0x01_0203, 0x04_0506, 0x07_0809],
    ));
    let packet = encoded(&v4(), &counts);
    assert_eq!(packet[40..], [172, 11, 1, 2, 3, 4, 5, 6, 7, 8, 9, 1]);
    counts.options = Options::AccEcn(AccEcn::new(Order::Ect1First, &[0x01_0203, 0x04_0506]));
    let packet = encoded(&v4(), &counts);
    assert_eq!(packet[40..], [174, 8, 1, 2, 3, 4, 5, 6]);
}

/// RFC 9768 §3.2.3: if the length is not one of table 5, the complete fields count.
#[test]
fn an_accecn_option_of_any_length_is_read() {
    let read = |options: &[u8]| {
        let decoded = wire::decode(&with_options(&v4(), Flags::ACK, options)).expect("it is right");
        decoded.segment.options.accecn().expect("it is there")
    };
    assert_eq!(read(&[172, 2]).count(), 0);
    assert_eq!(read(&[172, 4, 9, 9]).count(), 0);
    let odd = read(&[174, 7, 0, 0, 5, 9, 9]);
    assert_eq!((odd.count(), odd.field(Counter::Ect1)), (1, Some(5)));
    let long = read(&[172, 14, 0, 0, 1, 0, 0, 2, 0, 0, 3, 9, 9, 9]);
    assert_eq!((long.count(), long.field(Counter::Ect1)), (3, Some(3)));
}

#[test]
fn accecn_is_ignored_where_it_is_not_allowed() {
    // In a SYN without ACK (RFC 9768 §3.2.3.2.1), and after four SACK blocks, which leave no room
    // for it.
    let syn =
        wire::decode(&with_options(&v4(), Flags::SYN, &[172, 5, 0, 0, 1])).expect("it is right");
    assert_eq!(
        (syn.skipped_options, syn.segment.options),
        (1, Options::None)
    );
    let mut options = vec![5, 34];
    options.extend([7; 32]);
    options.extend([172, 5, 0, 0, 1]);
    let ack = wire::decode(&with_options(&v4(), Flags::ACK, &options)).expect("it is right");
    assert_eq!(ack.skipped_options, 1);
    assert_eq!(ack.segment.options.sack_blocks().len(), 4);
}

/// Each reason occurs for a packet that is otherwise correct.
#[test]
fn every_decode_error_is_detected() {
    let good = encoded(&v4(), &segment(Flags::ACK, Octets(b"hello".to_vec())));
    let good6 = encoded(&v6(), &segment(Flags::ACK, Octets(b"hello".to_vec())));
    assert!(wire::decode(&good).is_ok() && wire::decode(&good6).is_ok());
    let changed = |from: &[u8], at: usize, to: u8| {
        let mut packet = from.to_vec();
        packet[at] = to;
        packet
    };
    // Corrects the header checksum.
    let summed = |mut packet: Vec<u8>| {
        packet[10..12].fill(0);
        let mut sum = wire::Checksum::default();
        let header = (usize::from(packet[0] & 15) * 4).min(packet.len());
        sum.add(&packet[..header]);
        packet[10..12].copy_from_slice(&sum.finish().to_be_bytes());
        packet
    };
    // Changes an octet of the TCP header and corrects the checksum.
    let tcp = |at: usize, to: u8| {
        let mut packet = changed(&good, 20 + at, to);
        packet[36..38].fill(0);
        let mut sum = v4().pseudo_header(wire::Protocol::Tcp, packet.len() - 20);
        sum.add(&packet[20..]);
        packet[36..38].copy_from_slice(&sum.finish().to_be_bytes());
        packet
    };
    let short_tcp = summed(changed(&good[..30], 3, 30));
    let cases = [
        (Vec::new(), DecodeError::IpTruncated),
        (good[..19].to_vec(), DecodeError::IpTruncated),
        (good6[..39].to_vec(), DecodeError::IpTruncated),
        (changed(&good, 0, 0x55), DecodeError::Version),
        (changed(&good, 0, 0x44), DecodeError::IpHeaderLength),
        (changed(&good[..30], 0, 0x4f), DecodeError::IpHeaderLength),
        (changed(&good, 8, 63), DecodeError::IpChecksum),
        (summed(changed(&good, 2, 1)), DecodeError::IpLength),
        (summed(changed(&good, 3, 19)), DecodeError::IpLength),
        (changed(&good6, 4, 1), DecodeError::IpLength),
        (summed(changed(&good, 6, 0x20)), DecodeError::Fragment),
        (summed(changed(&good, 7, 1)), DecodeError::Fragment),
        (changed(&good6, 6, 44), DecodeError::Fragment),
        (changed(&good6, 6, 50), DecodeError::Extension),
        // Destination options whose length exceeds the packet.
        (
            changed(&changed(&good6, 6, 60), 41, 200),
            DecodeError::Extension,
        ),
        (summed(changed(&good, 9, 17)), DecodeError::Protocol),
        (short_tcp, DecodeError::TcpTruncated),
        (tcp(12, 0x40), DecodeError::DataOffset),
        (tcp(12, 0x70), DecodeError::DataOffset),
        (changed(&good, 41, 0), DecodeError::TcpChecksum),
        (
            with_options(&v4(), Flags::ACK, &[8, 0, 0, 0]),
            DecodeError::OptionLength,
        ),
        (
            with_options(&v4(), Flags::ACK, &[77, 1, 0, 0]),
            DecodeError::OptionLength,
        ),
        (
            with_options(&v4(), Flags::SYN, &[2, 3, 5, 0]),
            DecodeError::OptionLength,
        ),
        (
            with_options(&v4(), Flags::ACK, &[5, 2, 0, 0]),
            DecodeError::OptionLength,
        ),
        (
            with_options(&v4(), Flags::ACK, &[1, 1, 1, 8]),
            DecodeError::OptionPastEnd,
        ),
        (
            with_options(&v4(), Flags::ACK, &[8, 10, 0, 0]),
            DecodeError::OptionPastEnd,
        ),
    ];
    let mut discards = Discards::default();
    for (packet, error) in &cases {
        assert_eq!(wire::decode(packet), Err(*error), "{packet:02x?}");
        discards.count(*error);
    }
    for (error, n) in discards.iter() {
        assert!(n > 0, "no case for {}", error.name());
    }
}

#[test]
fn extension_headers_without_effect_are_skipped() {
    let expected = segment(Flags::ACK, Octets(b"hello".to_vec()));
    let mut packet = encoded(&v6(), &expected);
    // Hop-by-hop options of 16 octets, then destination options of 8.
    let extensions = [
        60, 1, 1, 12, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 6, 0, 1, 4, 0, 0, 0, 0,
    ];
    packet.splice(40..40, extensions);
    packet[5] += 24;
    packet[6] = 0;
    assert_eq!(
        wire::decode(&packet).expect("it is right").segment,
        expected
    );
}

#[test]
fn options_without_meaning_are_skipped_and_counted() {
    let decode = |flags, options: &[u8]| {
        wire::decode(&with_options(&v4(), flags, options)).expect("it is right")
    };
    let unknown = decode(
        Flags::ACK,
        &[1, 254, 6, 1, 2, 3, 4, 8, 10, 0, 0, 0, 5, 0, 0, 0, 6],
    );
    assert_eq!(unknown.skipped_options, 1);
    assert_eq!(
        unknown.segment.timestamps,
        Some(Timestamps { value: 5, echo: 6 })
    );
    // An MSS outside a SYN, and blocks in one.
    let late = decode(Flags::ACK, &[2, 4, 0, 100]);
    assert_eq!(
        (late.skipped_options, late.segment.options),
        (1, Options::None)
    );
    let early = decode(Flags::SYN, &[5, 10, 0, 0, 0, 1, 0, 0, 0, 2]);
    assert_eq!(
        (early.skipped_options, early.segment.options),
        (1, Options::None)
    );
    // Octets after the end of the list are ignored, even invalid ones.
    let ended = decode(Flags::ACK, &[0, 8, 99, 1]);
    assert_eq!((ended.skipped_options, ended.segment.timestamps), (0, None));
    // A SYN that offers scaling but names no MSS has the default of its IP version.
    let syn = decode(Flags::SYN, &[3, 3, 9]);
    let Options::Syn {
        mss, window_scale, ..
    } = syn.segment.options
    else {
        panic!("options of a SYN")
    };
    assert_eq!((mss, window_scale), (536, Some(9)));
}

#[test]
fn oversized_packets_are_refused() {
    let mut out = Vec::new();
    let mut much = segment(Flags::ACK, Length(65_535 - 40));
    assert_eq!(wire::encode(&v4(), PORTS, &much, &mut out), Ok(()));
    much.body = Length(65_535 - 39);
    assert_eq!(
        wire::encode(&v4(), PORTS, &much, &mut out),
        Err(EncodeError::Length(65_536))
    );
    let mut crowded = segment(Flags::ACK, Length(0));
    crowded.timestamps = Some(Timestamps { value: 0, echo: 0 });
    crowded.options = Options::Sack(4, [SackBlock::default(); 4]);
    assert_eq!(
        wire::encode(&v4(), PORTS, &crowded, &mut out),
        Err(EncodeError::Options(48))
    );
}
