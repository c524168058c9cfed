//! LACP: PDUs as octets, and two ports that exchange them over a link that loses, duplicates and
//! delays.

use std::{
    collections::BTreeMap,
    fs,
    process::{Command, Stdio},
};

use anabranch_core::units::{Duration, Instant};
use anabranch_path::group::lacp::{
    DecodeError, Information, LacpRate, Lacpdu, Port, Role, State,
    pdu::{FRAME_OCTETS, OCTETS},
};
use proptest::prelude::*;

prop_compose! {
    fn information()(
        system_priority: u16, system: [u8; 6], key: u16, port_priority: u16, port: u16, state: u8,
    ) -> Information {
        Information { system_priority, system, key, port_priority, port, state: State(state) }
    }
}

prop_compose! {
    fn pdu()(actor in information(), partner in information(), collector_max_delay: u16) -> Lacpdu {
        Lacpdu { actor, partner, collector_max_delay }
    }
}

proptest! {
    #[test]
    fn encoded_pdus_decode_to_the_same(pdu in pdu(), padding in prop::collection::vec(any::<u8>(), 0..30)) {
        let mut octets = pdu.encode().to_vec();
        octets.extend(padding);
        prop_assert_eq!(Lacpdu::decode(&octets), Ok(pdu));
    }

    /// Reserved octets are ignored; all others belong to the message.
    #[test]
    fn every_octet_counts_or_is_reserved(pdu in pdu(), at in 0..OCTETS, flip in 1..=255_u8) {
        let mut octets = pdu.encode();
        octets[at] ^= flip;
        let reserved = matches!(at, 19..=21 | 39..=41 | 46..=57 | 60..=109);
        // Version 1 and later.
        let version = at == 1 && octets[1] != 0;
        prop_assert_eq!(Lacpdu::decode(&octets) == Ok(pdu), reserved || version, "octet {}", at);
    }

    #[test]
    fn any_octets_are_decoded_or_rejected(octets in prop::collection::vec(any::<u8>(), 0..200)) {
        if let Ok(pdu) = Lacpdu::decode(&octets) {
            prop_assert_eq!(Lacpdu::decode(&pdu.encode()), Ok(pdu));
        }
    }

    #[test]
    fn truncated_pdus_are_rejected(pdu in pdu(), length in 0..OCTETS) {
        let cut = &pdu.encode()[..length];
        prop_assert_eq!(Lacpdu::decode(cut), Err(DecodeError::TooShort(length)));
    }
}

#[test]
fn errors_name_the_fault() {
    let good = Lacpdu::default().encode();
    let with = |at: usize, octet: u8| {
        let mut octets = good;
        octets[at] = octet;
        Lacpdu::decode(&octets)
            .expect_err("it is wrong")
            .to_string()
    };
    assert_eq!(with(0, 2), "the subtype of LACP is 1, not 2");
    assert_eq!(with(1, 0), "there is no version 0 of LACP");
    assert_eq!(
        with(23, 21),
        "a TLV of type 2 and length 20 is due at octet 22, not type 2 and length 21"
    );
    assert_eq!(
        Lacpdu::decode(&good[..109]).expect_err("short").to_string(),
        "an LACPDU has 110 octets, not 109"
    );
}

/// Decodes a port's first PDUs after it has woken up with tshark, which would read other values if
/// one octet were misplaced.
#[test]
#[expect(clippy::disallowed_methods, reason = "tshark reads files")]
fn tshark_decodes_the_encoded_pdus() {
    let tshark = Command::new("tshark")
        .arg("--version")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    if tshark.is_err() && std::env::var_os("CI").is_none() {
        eprintln!("tshark is not installed: nothing is tested");
        return;
    }
    let now = Instant::from_millis(3);
    let mut port = Port::working(Instant::START, Role::Leads, 7, LacpRate::Fast);
    port.select(false);
    let leaving = port.take_pdu().expect("it tells that");
    port.disable();
    port.select(true);
    port.enable(now);
    let back = port.take_pdu().expect("it tells that");
    let frames = [leaving, back].map(|pdu| pdu.frame(pdu.actor.system));
    assert!(frames.iter().all(|frame| frame.len() == FRAME_OCTETS));

    let file = std::env::temp_dir().join(format!("anabranch-lacp-{}.pcap", std::process::id()));
    fs::write(&file, pcap(&frames)).expect("a temporary file");
    let fields = [
        "lacp.version",
        "lacp.tlv_type",
        "lacp.tlv_length",
        "lacp.actor.sysid",
        "lacp.actor.port",
        "lacp.actor.state",
        "lacp.partner.sysid",
        "lacp.partner.port",
        "lacp.partner.state",
        "lacp.collector.max_delay",
        "_ws.expert",
    ];
    let output = Command::new("tshark")
        .arg("-r")
        .arg(&file)
        .args(["-T", "fields", "-E", "separator=|"])
        .args(fields.into_iter().flat_map(|field| ["-e", field]))
        .output()
        .expect("tshark runs");
    let _ = fs::remove_file(&file);
    let text = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(
        lines,
        [
            // First still collecting, no longer in sync and distributing; then in sync and expired
            // only.
            "0x01|0x01,0x02,0x03,0x00|0x14,0x14,0x10,0x00|02:00:00:00:00:01|7|0x17|02:00:00:00:00:02|7|0x3f|0|",
            "0x01|0x01,0x02,0x03,0x00|0x14,0x14,0x10,0x00|02:00:00:00:00:01|7|0x8f|02:00:00:00:00:02|7|0x07|0|",
        ],
        "{errors}"
    );
}

/// A capture file (`draft-ietf-opsawg-pcap`, link type Ethernet).
fn pcap(frames: &[[u8; FRAME_OCTETS]]) -> Vec<u8> {
    let mut file = Vec::new();
    for word in [
        0xa1b2_c3d4_u32,
        0x0002_0004_u32.rotate_left(16),
        0,
        0,
        65_535,
        1,
    ] {
        file.extend(word.to_le_bytes());
    }
    for frame in frames {
        let length = u32::try_from(FRAME_OCTETS).expect("a small number");
        for word in [0, 0, length, length] {
            file.extend(word.to_le_bytes());
        }
        file.extend(frame);
    }
    file
}

/// Outcome of a PDU in transit.
#[derive(Debug, Clone, Copy)]
enum Fate {
    Arrives,
    Lost,
    Doubled,
}

fn fate() -> impl Strategy<Value = Fate> {
    prop_oneof![Just(Fate::Arrives), Just(Fate::Lost), Just(Fate::Doubled)]
}

/// Two ports, and the PDUs in transit between them: first in, first out.
struct Pair {
    ports: [Port; 2],
    way: BTreeMap<(Instant, u32), (usize, Lacpdu)>,
    number: u32,
    now: Instant,
    delay: Duration,
    sent: u32,
}

impl Pair {
    fn new(rate: LacpRate, delay: Duration) -> Self {
        Self {
            ports: [Role::Leads, Role::Follows]
                .map(|role| Port::working(Instant::START, role, 1, rate)),
            way: BTreeMap::new(),
            number: 0,
            now: Instant::START,
            delay,
            sent: 0,
        }
    }

    /// Continues to `until`. PDUs meet the fates in turn, and arrive when the fates are used up.
    fn run(&mut self, until: Instant, fates: &mut impl Iterator<Item = Fate>) {
        loop {
            for end in 0..2 {
                if let Some(pdu) = self.ports[end].take_pdu() {
                    self.sent += 1;
                    let copies = match fates.next().unwrap_or(Fate::Arrives) {
                        Fate::Arrives => 1,
                        Fate::Lost => 0,
                        Fate::Doubled => 2,
                    };
                    for _ in 0..copies {
                        self.number += 1;
                        let key = (self.now + self.delay, self.number);
                        self.way.insert(key, (1 - end, pdu));
                    }
                }
            }
            let arrival = self.way.first_key_value().map(|((at, _), _)| *at);
            let timer = self.ports.iter().map(Port::deadline).min();
            let next = arrival
                .unwrap_or(Instant::NEVER)
                .min(timer.unwrap_or(Instant::NEVER));
            if next > until {
                self.now = until;
                return;
            }
            self.now = next;
            if arrival == Some(next) {
                let (_, (end, pdu)) = self.way.pop_first().expect("there is one");
                let octets = pdu.encode();
                let read = Lacpdu::decode(&octets).expect("it was written by us");
                self.ports[end].on_pdu(self.now, &read);
            } else {
                for port in &mut self.ports {
                    port.on_deadline(self.now);
                }
            }
        }
    }
    fn distributing(&self) -> [bool; 2] {
        self.ports.each_ref().map(Port::distributes)
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    /// Whatever happened to the PDUs, both ends agree soon after the link works again: one period
    /// for the next PDU, and two exchanges. Detects an end that waits for a lost PDU, or keeps the
    /// state received first.
    #[test]
    fn both_ends_converge(
        turns in prop::collection::vec((0..1_500_u64, any::<bool>()), 1..40),
        fates in prop::collection::vec(fate(), 0..120),
        delay in 0..400_u64,
    ) {
        let mut pair = Pair::new(LacpRate::Fast, Duration::from_millis(delay));
        let mut fates = fates.into_iter();
        let mut wanted = true;
        let mut at = Instant::START;
        for (gap, on) in turns {
            at = at + Duration::from_millis(gap);
            pair.run(at, &mut fates);
            pair.ports[0].select(on);
            wanted = on;
            if !on {
                prop_assert!(!pair.ports[0].distributes(), "it stops at once");
            }
        }
        // The remaining fates must be used up before the link works again.
        while fates.len() > 0 {
            at = at + Duration::from_secs(1);
            pair.run(at, &mut fates);
        }
        pair.run(at + Duration::from_secs(8), &mut fates);
        prop_assert_eq!(pair.distributing(), [wanted; 2]);
        prop_assert_eq!(pair.ports[0].may_sleep(), !wanted);
    }

    /// Without changes only periodic PDUs are sent: the ports do not trigger each other.
    #[test]
    fn stable_ports_send_only_periodic_pdus(
        turns in prop::collection::vec((0..1_500_u64, any::<bool>()), 1..40),
        delay in 0..400_u64,
    ) {
        let mut pair = Pair::new(LacpRate::Fast, Duration::from_millis(delay));
        let mut at = Instant::START;
        for (gap, on) in turns {
            at = at + Duration::from_millis(gap);
            pair.run(at, &mut std::iter::empty());
            pair.ports[0].select(on);
        }
        pair.run(at + Duration::from_secs(4), &mut std::iter::empty());
        let before = pair.sent;
        pair.run(at + Duration::from_secs(14), &mut std::iter::empty());
        prop_assert!((19..=21).contains(&(pair.sent - before)), "{}", pair.sent - before);
    }
}

/// The leading end changes its mind twice while its first PDU is in transit, and the other's PDU
/// crosses it.
#[test]
fn crossing_announcements_converge() {
    let delay = Duration::from_millis(100);
    let mut pair = Pair::new(LacpRate::Fast, delay);
    let none = &mut std::iter::empty();
    // Periodic PDUs of both ends leave at 1 s.
    pair.run(Instant::from_millis(990), none);
    pair.ports[0].select(false);
    pair.run(Instant::from_millis(1_020), none);
    pair.ports[0].select(true);
    pair.run(Instant::from_millis(1_050), none);
    pair.ports[0].select(false);
    // At 1.1 s the other's periodic PDU arrives, sent before any announcement arrived.
    pair.run(Instant::from_millis(1_180), none);
    assert_eq!(pair.distributing(), [false, false]);
    assert!(!pair.ports[0].may_sleep(), "the answer is under way");
    pair.run(Instant::from_millis(1_200), none);
    assert!(pair.ports[0].state().0 & State::COLLECTING.0 == 0);
    assert!(!pair.ports[0].state().has(State::SYNCHRONIZATION));
    pair.ports[0].select(true);
    pair.run(Instant::from_millis(1_700), none);
    assert_eq!(pair.distributing(), [true, true]);
}

/// §6.4.12: a port expires after three periods without a PDU. After three more fast periods it uses
/// its configuration: a working partner.
#[test]
fn silence_expires_the_partner() {
    for (rate, timeout) in [(LacpRate::Fast, 3_000), (LacpRate::Slow, 90_000)] {
        let mut pair = Pair::new(rate, Duration::ZERO);
        let mut silence = std::iter::repeat(Fate::Lost);
        let states = |pair: &Pair| {
            let state = pair.ports[0].state();
            let bits = [State::EXPIRED, State::DEFAULTED, State::DISTRIBUTING];
            bits.map(|bit| state.has(bit))
        };
        pair.run(Instant::from_millis(timeout - 1), &mut silence);
        assert_eq!(states(&pair), [false, false, true]);
        pair.run(Instant::from_millis(timeout), &mut silence);
        assert_eq!(states(&pair), [true, false, false]);
        pair.run(Instant::from_millis(timeout + 3_000), &mut silence);
        assert_eq!(states(&pair), [false, true, true]);
        pair.run(Instant::from_millis(timeout + 200_000), &mut silence);
        assert_eq!(states(&pair), [false, true, true]);
        pair.run(
            Instant::from_millis(timeout + 240_000),
            &mut std::iter::empty(),
        );
        assert_eq!(states(&pair), [false, false, true]);
    }
}
