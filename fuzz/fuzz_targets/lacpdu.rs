//! Any octets as an LACPDU, and as what a port hears: never a panic, and what is read is written as it was
//! but for what is reserved.
#![no_main]

use anabranch_core::units::Instant;
use anabranch_path::group::lacp::{LacpRate, Lacpdu, Port, Role, pdu::OCTETS};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let mut ports = [Role::Leads, Role::Follows]
        .map(|role| Port::working(Instant::START, role, 1, LacpRate::Fast));
    for (k, octets) in (0..).zip(bytes.chunks(OCTETS)) {
        let Ok(pdu) = Lacpdu::decode(octets) else {
            continue;
        };
        assert_eq!(Lacpdu::decode(&pdu.encode()), Ok(pdu));
        let now = Instant::from_millis(k * 100);
        ports[0].select(octets[109] & 1 == 0);
        for port in &mut ports {
            port.on_deadline(now);
            port.on_pdu(now, &pdu);
            // One answer to one PDU: no storm.
            let _ = port.take_pdu();
            assert!(port.take_pdu().is_none());
            assert!(port.deadline() > now);
        }
    }
});
