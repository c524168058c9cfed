//! Test vectors of `docs/gateway/vectors.json`: every message that follows from given keys, boot
//! numbers and indices.
//!
//! `ANABRANCH_WRITE_VECTORS=1` writes the file.

use anabranch_gateway::{
    blocks::{Protector, Rebuilder},
    crypto::{
        Answer, Entropy, Identity, Jar, Keys, MacKey, Pending, Session, SessionKeys, StampKey,
        open, open_cookie, public_key, with_mac2,
    },
    policy::Role,
    pool::Pool,
    time::Instant,
    wire::{
        Arrivals, Control, Entry, Initiation, Inner, Kind, MAC, Message, PathId, Place, Report,
        Response,
    },
};
use serde::{Deserialize, Serialize};
use std::{fmt::Write as _, fs, net::SocketAddr};

const FILE: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../docs/gateway/vectors.json"
);

/// Octets in hexadecimal.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Hex(String);

impl Hex {
    fn of(octets: &[u8]) -> Self {
        Self(octets.iter().fold(String::new(), |mut text, octet| {
            write!(text, "{octet:02x}").expect("writing to a string");
            text
        }))
    }

    fn octets(&self) -> Vec<u8> {
        let digits = |pair: &[u8]| {
            let pair = str::from_utf8(pair).expect("hexadecimal");
            u8::from_str_radix(pair, 16).expect("hexadecimal")
        };
        self.0.as_bytes().chunks(2).map(digits).collect()
    }

    fn array<const N: usize>(&self) -> [u8; N] {
        self.octets().try_into().expect("as many octets as needed")
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Vectors {
    about: String,
    cases: Vec<Case>,
}

/// The inputs of one end to a handshake.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct End {
    private: Hex,
    public: Hex,
    ephemeral_private: Hex,
    boot: Hex,
    index: u32,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Cookie {
    /// The responder's secret, and the initiator's address as the responder sees it.
    secret: Hex,
    from: SocketAddr,
    nonce: Hex,
    value: Hex,
    reply: Hex,
    initiation_with_mac2: Hex,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct StampReply {
    nonce: Hex,
    /// The responder's newest stamp.
    newest: u64,
    reply: Hex,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Data {
    name: String,
    from: Side,
    path: u8,
    block: u16,
    number: u64,
    sealed_header: Hex,
    content: Hex,
    datagram: Hex,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Side {
    Initiator,
    Responder,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Case {
    name: String,
    psk: Option<Hex>,
    path: u8,
    initiator: End,
    responder: End,
    /// The initiator's stamp.
    stamp: u64,
    initiation: Hex,
    cookie: Cookie,
    stamp_reply: StampReply,
    response: Hex,
    key_of_initiator: Hex,
    key_of_responder: Hex,
    data: Vec<Data>,
}

/// Returns these octets, and no others.
struct Given(Vec<u8>);

impl Entropy for Given {
    fn fill(&mut self, octets: &mut [u8]) {
        let rest = self.0.split_off(octets.len());
        octets.copy_from_slice(&std::mem::replace(&mut self.0, rest));
    }
}

fn path(number: u8) -> PathId {
    PathId::new(number).expect("a small number")
}

fn keys(own: &End, other: &End, psk: Option<&Hex>) -> Keys {
    Keys {
        private: own.private.array(),
        peer: public_key(&other.private.array()),
        psk: psk.map(Hex::array),
    }
}

fn boot(end: &End) -> u64 {
    u64::from_be_bytes(end.boot.array())
}

fn ephemeral(end: &End) -> Given {
    Given(end.ephemeral_private.octets())
}

fn pending(case: &Case) -> Pending {
    let keys = keys(&case.initiator, &case.responder, case.psk.as_ref());
    let (index, payload) = (case.initiator.index, [boot(&case.initiator), case.stamp]);
    let (identity, mut given) = (Identity::new(keys.private), ephemeral(&case.initiator));
    Pending::begin(&identity, &keys, index, payload, &mut given).expect("valid keys")
}

/// The responder's answer.
fn respond(case: &Case, initiation: &Initiation) -> Answer {
    let b = &case.responder;
    let identity = Identity::new(b.private.array());
    let opened = open(&identity, initiation, |_| true, &mut ephemeral(b)).expect("it is authentic");
    assert_eq!(opened.peer, public_key(&case.initiator.private.array()));
    assert_eq!(
        (opened.boot, opened.stamp),
        (boot(&case.initiator), case.stamp)
    );
    let psk = case.psk.as_ref().map(Hex::array);
    opened.answer(psk.as_ref(), boot(b)).expect("an answer")
}

/// The sessions of both ends.
fn sessions(case: &Case, initiator: &SessionKeys, responder: &SessionKeys) -> [Session; 2] {
    let (a, b) = (case.initiator.index, case.responder.index);
    [
        Session::new(initiator, a, b, true, Instant::START),
        Session::new(responder, b, a, false, Instant::START),
    ]
}

/// The case with all messages computed from the inputs of each end.
fn computed(given: &Case) -> Case {
    let mut case = given.clone();
    for end in [&mut case.initiator, &mut case.responder] {
        end.public = Hex::of(&public_key(&end.private.array()));
    }
    let (a, b) = (&case.initiator, &case.responder);
    let mut pending = pending(given);
    let (of_a, of_b) = (MacKey::of(&a.public.array()), MacKey::of(&b.public.array()));
    let with_cookie = |cookie: Option<&[u8; MAC]>| {
        with_mac2(path(case.path), a.index, &pending.noise, &of_b, cookie)
    };
    let initiation = with_cookie(None);
    case.initiation = Hex::of(&initiation.encode());

    let drawn = [
        given.cookie.secret.octets(),
        vec![0; 32],
        given.cookie.nonce.octets(),
    ];
    let mut drawn = Given(drawn.concat());
    let jar = Jar::new(Instant::START, &mut drawn);
    let reply = jar.reply(&of_b, &initiation, given.cookie.from, &mut drawn);
    let reply = reply.expect("a reply");
    let cookie = open_cookie(&of_b, &reply, &initiation.mac1).expect("it is authentic");
    case.cookie.value = Hex::of(&cookie);
    case.cookie.reply = Hex::of(&reply.encode());
    case.cookie.initiation_with_mac2 = Hex::of(&with_cookie(Some(&cookie)).encode());

    let key = StampKey::of(
        &Identity::new(b.private.array()),
        &a.public.array(),
        &b.public.array(),
    );
    let mut nonce = Given(given.stamp_reply.nonce.octets());
    let reply = key.reply(&initiation, case.stamp_reply.newest, &mut nonce);
    case.stamp_reply.reply = Hex::of(&reply.expect("a reply").encode());

    let answer = respond(given, &initiation);
    let mut response = Response {
        path: path(case.path),
        sender: b.index,
        receiver: a.index,
        noise: answer.noise,
        mac1: [0; MAC],
    };
    response.mac1 = of_a.mac1(&response.encode()[..Response::BEFORE_MAC1]);
    case.response = Hex::of(&response.encode());
    let finished = pending.finish(&response).expect("it is authentic");
    case.key_of_initiator = Hex::of(&finished.send);
    case.key_of_responder = Hex::of(&finished.receive);

    let mut ends = sessions(&case, &finished, &answer.keys);
    for data in &mut case.data {
        let header = data.sealed_header.octets();
        let (inner, _) = Inner::decode(&header, data.block).expect("a sealed header");
        let mut datagram = Vec::new();
        let number = ends[usize::from(data.from == Side::Responder)].seal(
            path(data.path),
            inner,
            &data.content.octets(),
            &mut datagram,
        );
        data.number = number.expect("numbers are left");
        data.datagram = Hex::of(&datagram);
    }
    case
}

#[expect(clippy::disallowed_methods, reason = "tests read their data")]
fn read() -> Vectors {
    let text = fs::read_to_string(FILE).expect("the file is there");
    serde_json::from_str(&text).expect("it has the form")
}

/// Whether the file is to be written.
#[expect(clippy::disallowed_methods, reason = "a developer asks for it")]
fn is_asked_to_write() -> bool {
    std::env::var_os("ANABRANCH_WRITE_VECTORS").is_some()
}

#[test]
#[expect(clippy::disallowed_methods, reason = "a developer asks for it")]
fn vectors_match_the_implementation() {
    if is_asked_to_write() {
        let vectors = Vectors {
            about: "Test vectors of gateway-protocol.md; octets in hexadecimal. All private keys are for tests alone.".to_owned(),
            cases: cases().iter().map(computed).collect(),
        };
        let text = serde_json::to_string_pretty(&vectors).expect("it is JSON") + "\n";
        fs::write(FILE, text).expect("it is written");
    }
    let vectors = read();
    assert!(vectors.cases.len() >= 2);
    for case in &vectors.cases {
        assert_eq!(&computed(case), case, "{}", case.name);
    }
}

#[test]
fn vectors_are_opened_by_the_other_end() {
    for case in &read().cases {
        let (a, b) = (&case.initiator, &case.responder);
        let Ok(Message::Initiation(initiation)) =
            Message::decode(&case.cookie.initiation_with_mac2.octets())
        else {
            panic!("{} has no initiation", case.name);
        };
        let secrets = [case.cookie.secret.octets(), vec![0; 32]].concat();
        let mut none = Given(secrets);
        let mut jar = Jar::new(Instant::START, &mut none);
        assert!(jar.is_paid(&initiation, case.cookie.from, Instant::START, &mut none));
        let answer = respond(case, &initiation);
        let Ok(Message::Response(response)) = Message::decode(&case.response.octets()) else {
            panic!("{} has no response", case.name);
        };
        let mut pending = pending(case);
        let finished = pending.finish(&response).expect("it is authentic");
        assert_eq!(
            [answer.keys.peer_boot, finished.peer_boot],
            [boot(a), boot(b)]
        );
        let Ok(Message::CookieReply(reply)) = Message::decode(&case.cookie.reply.octets()) else {
            panic!("{} has no cookie reply", case.name);
        };
        let of_b = MacKey::of(&b.public.array());
        let cookie = open_cookie(&of_b, &reply, &initiation.mac1);
        assert_eq!(cookie, Some(case.cookie.value.array()));
        let stamp = &case.stamp_reply;
        let Ok(Message::StampReply(reply)) = Message::decode(&stamp.reply.octets()) else {
            panic!("{} has no stamp reply", case.name);
        };
        let identity = Identity::new(a.private.array());
        let key = StampKey::of(&identity, &b.public.array(), &b.public.array());
        assert_eq!(key.open(&reply, &initiation.mac1), Some(stamp.newest));
        let mut ends = sessions(case, &finished, &answer.keys);
        for data in &case.data {
            let mut datagram = data.datagram.octets();
            let Ok(Message::Data(header)) = Message::decode(&datagram) else {
                panic!("{} is no data", data.name);
            };
            assert_eq!(
                (header.path.number(), header.block, header.number),
                (data.path, data.block, data.number)
            );
            let receiver = &mut ends[usize::from(data.from == Side::Initiator)];
            assert_eq!(header.receiver, receiver.index);
            let opened = receiver.open(header, &mut datagram).expect("authentic");
            let (head, content) = opened.split_at(8);
            assert_eq!(
                (Hex::of(head), Hex::of(content)),
                (data.sealed_header.clone(), data.content.clone())
            );
        }
    }
}

/// Kind and content of a data message.
fn decoded(data: &Data) -> (Kind, Vec<u8>) {
    let header = data.sealed_header.octets();
    let (inner, _) = Inner::decode(&header, data.block).expect("a sealed header");
    (inner.kind, data.content.octets())
}

#[test]
fn a_repair_packet_of_the_vectors_restores_a_packet() {
    for case in &read().cases {
        let messages: Vec<_> = case.data.iter().map(decoded).collect();
        let (mut pool, now) = (Pool::default(), Instant::START);
        for missing in 0..3 {
            let mut rebuilder = Rebuilder::default();
            let mut rebuilt = Vec::new();
            let mut lost = None;
            for (kind, content) in &messages {
                match *kind {
                    Kind::Protected { place, index, .. } if index == missing => {
                        lost = Some((place, content.clone()));
                    }
                    Kind::Protected {
                        place,
                        block,
                        index,
                    } => {
                        rebuilt.extend(rebuilder.on_source(
                            (block, index),
                            place,
                            content,
                            now,
                            &mut pool,
                        ));
                    }
                    Kind::Repair(repair) => {
                        rebuilt.extend(rebuilder.on_repair(repair, content, now, &mut pool));
                    }
                    _ => {}
                }
            }
            let (place, packet) = lost.expect("it is in the block");
            let (near, back) = rebuilt.first().expect("it is brought back");
            assert_eq!((near.flow, back), (place.flow, &packet));
            assert_eq!(u32::from(near.low), place.number & 0xffff);
        }
    }
}

/// An IPv6 packet without a next header.
fn packet(payload: &[u8]) -> Vec<u8> {
    let length = u16::try_from(payload.len()).expect("a small packet");
    let mut packet = vec![0x60, 0, 0, 0];
    packet.extend(length.to_be_bytes());
    packet.extend([59, 64]);
    for host in [1, 2] {
        packet.extend([0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, host]);
    }
    packet.extend(payload);
    packet
}

/// The inputs of the vectors.
fn cases() -> Vec<Case> {
    let end = |seed: u8, index| End {
        private: Hex::of(&[seed; 32]),
        public: Hex::default(),
        ephemeral_private: Hex::of(&[seed + 1; 32]),
        boot: Hex::of(&[seed + 2; 8]),
        index,
    };
    let case = |name: &str, psk: Option<[u8; 32]>, from: &str| Case {
        name: name.to_owned(),
        psk: psk.map(|key| Hex::of(&key)),
        path: 3,
        initiator: end(0x10, 0x0102_0304),
        responder: end(0x20, 0x0506_0708),
        stamp: 0x0102_0304_0506_0708,
        initiation: Hex::default(),
        cookie: Cookie {
            secret: Hex::of(&[0x31; 32]),
            from: from.parse().expect("an address"),
            nonce: Hex::of(&[0x32; 24]),
            value: Hex::default(),
            reply: Hex::default(),
            initiation_with_mac2: Hex::default(),
        },
        stamp_reply: StampReply {
            nonce: Hex::of(&[0x33; 24]),
            newest: 0x0203_0405_0607_0809,
            reply: Hex::default(),
        },
        response: Hex::default(),
        key_of_initiator: Hex::default(),
        key_of_responder: Hex::default(),
        data: data(),
    };
    vec![
        case("no pre-shared key", None, "192.0.2.1:51900"),
        case("a pre-shared key", Some([0x41; 32]), "[2001:db8::1]:51900"),
    ]
}

fn data() -> Vec<Data> {
    let message = |name: &str, from, path, kind: Kind, content: &[u8]| Data {
        name: name.to_owned(),
        from,
        path,
        block: kind.block(),
        number: 0,
        sealed_header: Hex::of(&Inner { kind }.encode()),
        content: Hex::of(content),
        datagram: Hex::default(),
    };
    let place = |number| Place { flow: 700, number };
    let mut control = Vec::new();
    let report = Report {
        version: 2,
        loss: 655,
        highest: 130,
        arrived: 1_000_000,
        held: 5_000,
        arrivals: Arrivals::new([0b101, u64::MAX, u64::MAX << 60]),
    };
    let entry = |number, role, report, acknowledged| Entry {
        path: path(number),
        role,
        report,
        acknowledged,
    };
    let entries = vec![
        entry(0, Role::Active, Some(report), Some(7)),
        entry(1, Role::Backup, None, Some(9)),
        entry(2, Role::Metered, None, None),
    ];
    Control { entries }.encode(&mut control);
    let (a, b) = (Side::Initiator, Side::Responder);
    let mut data = vec![
        message("a probe", a, 3, Kind::Probe, &[]),
        message("a probe back", b, 3, Kind::Probe, &[]),
        message("a packet", a, 3, Kind::Packet(place(0)), &packet(b"one")),
        message(
            "a packet on another path",
            a,
            15,
            Kind::Packet(place(1)),
            &packet(b"two"),
        ),
        message("a control message", b, 3, Kind::Control, &control),
        message("a probe of the path MTU", a, 3, Kind::MtuProbe, &[0; 40]),
    ];
    let (mut protector, mut pool, mut last) = (Protector::default(), Pool::default(), 0);
    for (number, payload) in (0x0001_fffe..).zip([&b"three"[..], b"four", b"fifteen"]) {
        let packet = packet(payload);
        let (block, index) =
            protector.add(place(number), &packet, &mut last, Instant::START, &mut pool);
        let kind = Kind::Protected {
            place: place(number),
            block,
            index,
        };
        data.push(message("a packet of a block", a, index, kind, &packet));
    }
    protector.close(2, &mut pool);
    while let Some((repair, content)) = protector.pop() {
        data.push(message(
            "a repair packet",
            a,
            repair.key,
            Kind::Repair(repair),
            &content,
        ));
    }
    data
}

/// The basis of the specification, from bit 0 of a word.
const BASIS: [u16; 16] = [
    0x0001, 0xacca, 0x3c0e, 0x163e, 0xc582, 0xed2e, 0x914c, 0x4012, 0x6c98, 0x10d8, 0x6a72, 0xb900,
    0xfdb8, 0xfb34, 0xff38, 0x991e,
];

/// The element of GF(2^16) that a word represents.
fn element(word: u16) -> u16 {
    let bits = BASIS.iter().enumerate();
    bits.filter(|(bit, _)| word >> bit & 1 == 1)
        .fold(0, |sum, (_, basis)| sum ^ basis)
}

fn multiply(a: u16, b: u16) -> u16 {
    let mut product = (0..16)
        .filter(|bit| b >> bit & 1 == 1)
        .fold(0, |sum, bit| sum ^ u32::from(a) << bit);
    for bit in (16..32).rev() {
        if product >> bit & 1 == 1 {
            product ^= 0x1_002d << (bit - 16);
        }
    }
    u16::try_from(product).expect("it is reduced")
}

fn inverse(a: u16) -> u16 {
    // a^(2^16 - 2)
    let square = |a| multiply(a, a);
    (1..16)
        .scan(a, |power, _| {
            *power = square(*power);
            Some(*power)
        })
        .fold(1, multiply)
}

/// The value at `at` of the polynomial with `values` at the points from `first` (Lagrange).
fn value(first: usize, values: &[u16], at: usize) -> u16 {
    let point = |n: usize| element(u16::try_from(n).expect("a small block"));
    let points: Vec<u16> = (first..).take(values.len()).map(point).collect();
    let mut sum = 0;
    for (j, value) in values.iter().enumerate() {
        let others = points.iter().enumerate().filter(|(m, _)| *m != j);
        let term = others.fold(*value, |product, (_, other)| {
            let factor = inverse(points[j] ^ other);
            multiply(product, multiply(point(at) ^ other, factor))
        });
        sum ^= term;
    }
    sum
}

/// The words of a symbol.
fn words(symbol: &[u8]) -> Vec<u16> {
    let words = symbol.chunks(64).flat_map(|group| {
        let (low, high) = group.split_at(group.len() / 2);
        low.iter()
            .zip(high)
            .map(|(&low, &high)| u16::from_le_bytes([low, high]))
    });
    words.collect()
}

/// The repair word of a key, computed as specified.
fn repair_word(packets: &[u16], repairs: usize, key: usize) -> u16 {
    let (count, k, r) = (
        packets.len(),
        packets.len().next_power_of_two(),
        repairs.next_power_of_two(),
    );
    let padded = |run: &[u16], size: usize| {
        let zeros = std::iter::repeat(0);
        let run = run.iter().map(|&word| element(word)).chain(zeros);
        run.take(size).collect::<Vec<_>>()
    };
    if k > r || (k == r && count <= repairs) {
        let runs = packets.chunks(r).enumerate();
        runs.fold(0, |sum, (c, run)| {
            sum ^ value((c + 1) * r, &padded(run, r), key)
        })
    } else {
        value(0, &padded(packets, k), k + key)
    }
}

#[test]
fn repair_packets_are_values_of_polynomials() {
    let mut pool = Pool::default();
    for (count, repairs) in [(1, 1), (3, 2), (2, 5), (4, 4), (4, 3), (3, 4), (9, 3)] {
        let (mut protector, mut last) = (Protector::default(), 0);
        let mut symbols = Vec::new();
        for number in 0..count {
            let packet = packet(&vec![0x9d; 3 + 7 * number as usize]);
            let place = Place { flow: 700, number };
            protector.add(place, &packet, &mut last, Instant::START, &mut pool);
            symbols.push(
                [
                    &[0x02, 0xbc, 0, u8::try_from(number).expect("small")],
                    &packet[..],
                ]
                .concat(),
            );
        }
        let longest = symbols.iter().map(Vec::len).max().unwrap_or(0);
        for symbol in &mut symbols {
            symbol.resize(longest.next_multiple_of(2), 0);
        }
        let symbols: Vec<_> = symbols.iter().map(|symbol| words(symbol)).collect();
        protector.close(repairs, &mut pool);
        let mut made = 0;
        while let Some((repair, content)) = protector.pop() {
            made += 1;
            let parity = words(&[&repair.place, &content[..]].concat());
            for (position, &word) in parity.iter().enumerate() {
                let packets: Vec<_> = symbols.iter().map(|symbol| symbol[position]).collect();
                let expected = repair_word(&packets, repairs, repair.key.into());
                assert_eq!(element(word), expected, "{count} + {repairs}, {position}");
            }
        }
        assert_eq!(made, repairs);
    }
}
