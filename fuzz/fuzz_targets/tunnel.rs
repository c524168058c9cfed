//! Any octets as packets that leave a tunnel: a decoded header is encoded unchanged, except for
//! reserved fields, and each restorer releases every packet exactly once for any headers.
#![cfg_attr(feature = "libfuzzer", no_main)]

use anabranch_core::{
    packet::{ConnectionId, PacketId},
    units::{Duration, Instant},
};
use anabranch_fuzz::fuzz_target;
use anabranch_path::multipath::{
    header::{OCTETS, decode, encode},
    restore::{Arrived, Init, Restore, TcpPlace, registry},
};

fuzz_target!(|bytes: &[u8]| {
    for (_, config, _) in registry() {
        let mut restorer = config.build(&Init { routes: 4 });
        let mut released = Vec::new();
        let mut now = Instant::START;
        let mut count = 0;
        for octets in bytes.chunks(OCTETS) {
            let Ok((header, rest)) = decode(octets) else {
                continue;
            };
            assert!(rest.is_empty());
            assert_eq!(decode(&encode(&header)), Ok((header, rest)));
            now = now + Duration::from_micros(u64::from(octets[15]) * 1_000);
            while restorer.timer().is_some_and(|due| due <= now) {
                restorer.on_timer(now, &mut released);
            }
            let tcp = TcpPlace {
                seq: header.number,
                len: u32::from(header.route_number),
                opens: header.sent & 1 != 0,
                ends: header.sent & 2 != 0,
            };
            let arrived = Arrived {
                packet: PacketId(count),
                size: 1_500,
                connection: ConnectionId(u32::from(header.flow)),
                tunnel: header,
                tcp: Some(tcp),
            };
            restorer.arrive(now, arrived, &mut released);
            count += 1;
        }
        while let Some(due) = restorer.timer() {
            now = now.max(due);
            restorer.on_timer(now, &mut released);
        }
        released.sort_unstable();
        assert_eq!(released, (0..count).map(PacketId).collect::<Vec<_>>());
    }
});
