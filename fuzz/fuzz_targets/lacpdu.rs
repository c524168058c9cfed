//! Any octets as an LACPDU, and as input of a port: nothing panics, and a decoded LACPDU is encoded
//! unchanged, except for reserved fields.
#![cfg_attr(feature = "libfuzzer", no_main)]

use anabranch_core::units::Instant;
use anabranch_fuzz::fuzz_target;
use anabranch_path::group::lacp::{LacpRate, Lacpdu, Port, Role, pdu::OCTETS};

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
            // At most one answer per LACPDU, so that two ports cannot cause a storm.
            let _ = port.take_pdu();
            assert!(port.take_pdu().is_none());
            assert!(port.deadline() > now);
        }
    }
});
