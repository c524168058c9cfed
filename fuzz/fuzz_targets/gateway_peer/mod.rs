//! Shared by the gateway's targets: an end of a tunnel, and a peer that holds valid keys and sends
//! messages given by the input.

use anabranch_core::{rng::Stream, units::Duration};
use anabranch_gateway::{
    crypto::{Entropy, Identity, Keys, MacKey, Pending, Session, public_key, with_mac2},
    path::Route,
    policy::{Class, Match, Role, Rule},
    time::Instant,
    tunnel::{Config, PathConfig, Tunnel},
    wire::{Arrivals, Control, Entry, Inner, Kind, Message, PathId, Report},
};

pub struct Seeded(Stream, u64);

impl Seeded {
    pub fn new(seed: u64) -> Self {
        Self(Stream::new(seed, "fuzz"), 0)
    }
}

impl Entropy for Seeded {
    fn fill(&mut self, octets: &mut [u8]) {
        for octet in octets {
            *octet = self.0.at(self.1).bits().to_be_bytes()[0];
            self.1 += 1;
        }
    }
}

pub fn route() -> Route {
    Route {
        local: 0,
        remote: ([192, 0, 2, 1], 5_000).into(),
    }
}

pub fn keys(private: u8, peer: u8) -> Keys {
    Keys {
        private: [private; 32],
        peer: public_key(&[peer; 32]),
        psk: None,
    }
}

/// An end with two paths and a class of each kind.
pub fn tunnel(private: u8, peer: u8, begins: bool) -> Tunnel {
    let path = |id: PathId| PathConfig {
        id,
        route: begins.then(route),
        role: if id.number() == 0 {
            Role::Active
        } else {
            Role::Metered
        },
    };
    let rule = |dscp: u8, class: Class| Rule {
        matches: Match {
            dscp: vec![dscp],
            ..Match::default()
        },
        class,
    };
    let pinned = PathId::new(1).map(|path| rule(8, Class::Pinned(path)));
    let config = Config {
        keys: keys(private, peer),
        paths: (0..2).filter_map(PathId::new).map(path).collect(),
        sources: Vec::new().into(),
        rules: [rule(46, Class::Interactive)]
            .into_iter()
            .chain(pinned)
            .collect(),
        epoch: 0,
    };
    let entropy = Seeded::new(private.into());
    Tunnel::new(config, Box::new(entropy), Instant::START)
}

/// An end, and a peer's session with it.
pub struct Peer {
    pub tunnel: Tunnel,
    pub now: Instant,
    session: Session,
    buffer: Vec<u8>,
}

impl Peer {
    /// Completes the handshake.
    pub fn new() -> Option<Self> {
        let mut tunnel = tunnel(2, 1, false);
        let (now, path) = (Instant::START, PathId::new(0)?);
        let mut pending = Pending::begin(
            &Identity::new([1; 32]),
            &keys(1, 2),
            7,
            [1; 2],
            &mut Seeded::new(9),
        )?;
        let key = MacKey::of(&public_key(&[2; 32]));
        let mut initiation = with_mac2(path, 7, &pending.noise, &key, None).encode();
        tunnel.handle(&mut initiation, route(), now, now);
        let mut buffer = Vec::new();
        tunnel.poll_transmit(now, &mut buffer)?;
        let Ok(Message::Response(response)) = Message::decode(&buffer) else {
            return None;
        };
        let keys = pending.finish(&response)?;
        let session = Session::new(&keys, 7, response.sender, true, now);
        let mut peer = Self {
            tunnel,
            now,
            session,
            buffer,
        };
        // A report of its probe makes the path deliver.
        peer.send(0, Kind::Probe, &[]);
        peer.tunnel.poll_transmit(now, &mut peer.buffer)?;
        let Ok(Message::Data(probe)) = Message::decode(&peer.buffer) else {
            return None;
        };
        let report = Report {
            version: 1,
            loss: 0,
            highest: probe.number,
            arrived: 0,
            held: 0,
            arrivals: Arrivals::new([1 << probe.number]),
        };
        let entry = Entry {
            path,
            role: Role::Active,
            report: Some(report),
            acknowledged: None,
        };
        let entries = vec![entry];
        let mut content = Vec::new();
        Control { entries }.encode(&mut content);
        peer.send(0, Kind::Control, &content);
        assert!(peer.tunnel.is_up());
        peer.drain();
        Some(peer)
    }

    /// Sends a message with a valid seal.
    pub fn send(&mut self, path: u8, kind: Kind, content: &[u8]) {
        let Some(path) = PathId::new(path % 16) else {
            return;
        };
        let sealed = self
            .session
            .seal(path, Inner { kind }, content, &mut self.buffer);
        if sealed.is_some() {
            self.tunnel
                .handle(&mut self.buffer, route(), self.now, self.now);
        }
    }

    /// Takes all packets the end sends, and checks that its memory is within its bounds.
    pub fn drain(&mut self) {
        while self
            .tunnel
            .poll_transmit(self.now, &mut self.buffer)
            .is_some()
        {}
        while let Some(packet) = self.tunnel.poll_deliver(self.now) {
            self.tunnel.recycle(packet);
        }
        let timeout = self.tunnel.poll_timeout();
        assert!(timeout.is_none_or(|at| at > self.now));
        let stats = self.tunnel.stats();
        assert!(stats.sessions > 0 && stats.paths.len() <= 16);
        assert!(stats.waiting <= 4_096 && stats.buffers <= 2_048 && stats.collected <= 16 * 456);
    }

    pub fn wait(&mut self, ms: u64) {
        self.now = self.now + Duration::from_millis(ms);
    }
}
