//! Any segment that has room on the wire comes back as it was.
#![no_main]

use anabranch_core::{body::Octets, packet::Ecn};
use anabranch_wire::{
    self as wire, AccEcn, EncodeError, Flags, IpHeader, Options, Ports, SackBlock, Segment,
    Timestamps, Version, accecn::Order,
};
use libfuzzer_sys::fuzz_target;

/// Takes numbers off the front of the input; zeros once it is used up.
struct Input<'a>(&'a [u8]);

impl Input<'_> {
    fn octets<const N: usize>(&mut self) -> [u8; N] {
        let taken = std::array::from_fn(|i| self.0.get(i).copied().unwrap_or(0));
        self.0 = self.0.get(N..).unwrap_or(&[]);
        taken
    }
    fn octet(&mut self) -> u8 {
        self.octets::<1>()[0]
    }
    fn short(&mut self) -> u16 {
        u16::from_be_bytes(self.octets())
    }
    fn long(&mut self) -> u32 {
        u32::from_be_bytes(self.octets())
    }
    fn accecn(&mut self) -> Option<AccEcn> {
        let shape = self.octet();
        let order = if shape & 1 == 0 {
            Order::Ect0First
        } else {
            Order::Ect1First
        };
        let fields = [self.long(), self.long(), self.long()];
        let count = usize::from(shape >> 1 & 3);
        (shape & 8 != 0).then(|| AccEcn::new(order, &fields[..count]))
    }
}

fuzz_target!(|bytes: &[u8]| {
    let mut input = Input(bytes);
    let how = input.octet();
    let version = if how & 1 == 0 {
        Version::V4 {
            source: input.octets(),
            destination: input.octets(),
            identification: input.short(),
            dont_fragment: how & 2 != 0,
        }
    } else {
        Version::V6 {
            source: input.octets(),
            destination: input.octets(),
            flow_label: input.long() & 0xf_ffff,
        }
    };
    let class = input.octet();
    let ip = IpHeader {
        version,
        dscp: class >> 2,
        ecn: Ecn::from_bits(class),
        hop_limit: input.octet(),
    };
    let ports = Ports {
        source: input.short(),
        destination: input.short(),
    };
    let mut flags = input.short() & 0x1ff;
    let accecn = input.accecn();
    let options = match how >> 2 & 3 {
        0 => match accecn {
            Some(accecn) => {
                flags |= Flags::ACK.0;
                Options::AccEcn(accecn)
            }
            None => Options::None,
        },
        1 => {
            flags |= Flags::SYN.0;
            if accecn.is_some() {
                flags |= Flags::ACK.0;
            }
            Options::Syn {
                mss: input.short(),
                window_scale: (how & 16 != 0).then(|| input.octet()),
                sack_permitted: how & 32 != 0,
                accecn,
            }
        }
        _ => {
            flags &= !Flags::SYN.0;
            let n = input.octet() % 4 + 1;
            let mut blocks = [SackBlock::default(); 4];
            for block in &mut blocks[..usize::from(n)] {
                (block.left, block.right) = (input.long(), input.long());
            }
            let [a, b, c, _] = blocks;
            match accecn {
                Some(accecn) if n < 4 => Options::SackAccEcn(n, [a, b, c], accecn),
                _ => Options::Sack(n, blocks),
            }
        }
    };
    let segment = Segment {
        seq: input.long(),
        ack: input.long(),
        window: input.short(),
        flags: Flags(flags),
        timestamps: (how & 64 != 0).then(|| Timestamps {
            value: input.long(),
            echo: input.long(),
        }),
        options,
        body: Octets(input.0.to_vec()),
    };
    let mut packet = Vec::new();
    match wire::encode(&ip, ports, &segment, &mut packet) {
        Ok(()) => {}
        Err(EncodeError::Options(_)) => {
            assert!(options.size() > 28 && segment.timestamps.is_some());
            return;
        }
        Err(EncodeError::Length(_)) => {
            assert!(segment.body.0.len() > 65_000);
            return;
        }
    }
    let decoded = wire::decode(&packet).expect("we wrote it");
    assert_eq!(decoded.segment, segment);
    assert_eq!((decoded.ip, decoded.ports), (ip, ports));
});
