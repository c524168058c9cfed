//! Reception of initiations, for all tunnels that share a private key.
//!
//! Its work for an initiation does not depend on the number of peers: it is read once, and the
//! initiator's key in it gives the peer. Load is bounded in this order:
//!
//! 1. An initiation needs the code that proves knowledge of this end's public key.
//! 2. [`FREE_PER_S`] are read without more. Beyond, one needs a cookie, which proves the address.
//!    [`COOKIES_PER_S`] are sent.
//! 3. Of those with a cookie, [`PAID_PER_S`] are read.
//!
//! For prefixes beyond their rate, the rate of initiations with a cookie is consulted before their
//! codes are verified. An initiator that is no peer is refused after the first of two key exchanges.
//!
//! Half of both bursts is reserved for prefixes of source addresses that keep to their own rates.

use core::net::{IpAddr, SocketAddr};
use std::collections::{BTreeMap, VecDeque};

use crate::{
    crypto::{Entropy, Identity, Jar, MacKey, Meter, Opened, Unread, mac, open},
    time::Instant,
    wire::{CookieReply, Initiation, MAC},
};

/// Initiations per second that are read without a cookie, and the size of a burst.
pub const FREE_PER_S: f64 = 50.0;
/// Initiations per second that are read with a cookie, and the size of a burst.
pub const PAID_PER_S: f64 = 200.0;
/// The part of the burst that only prefixes within their rate may use.
const PAID_RESERVED: f64 = PAID_PER_S / 2.0;
/// Cookies per second, and the size of a burst.
pub const COOKIES_PER_S: f64 = 3_000.0;
const COOKIES_BURST: f64 = 300.0;
const COOKIES_RESERVED: f64 = COOKIES_BURST / 2.0;
/// Initiations per second with a cookie of one prefix that have precedence, and the size of a burst.
const PREFIX_PAID: (f64, f64) = (2.0, 4.0);
/// Cookies per second for one prefix that have precedence, and the size of a burst.
const PREFIX_COOKIES: (f64, f64) = (20.0, 20.0);
/// Prefixes of this length are one source: what a provider delegates to one customer at most.
const PREFIX_V4: u32 = 24;
const PREFIX_V6: u32 = 48;
/// Buckets for prefixes. Each prefix has two, and one with a token suffices: an attacker cannot
/// choose them, and hardly ever empties both of another prefix.
const PREFIXES: usize = 4_096;
/// Recently read initiations whose copies are recognized. Copies arrive on every path, for 5 s.
const RECENT: usize = 2_048;

/// The result for an initiation.
#[derive(Debug)]
pub enum Admission {
    /// It is not for this end, not authentic, or of an unknown peer.
    Refused(Unread),
    /// It exceeds the rate.
    Limited,
    /// A cookie is demanded.
    Cookie(CookieReply),
    /// It is probably a copy of an initiation of this peer. It was not read.
    Copy(u32),
    /// It is an authentic initiation of this peer.
    Opened(u32, Box<Opened>),
}

/// The reception of a private key.
#[derive(Debug)]
pub struct Reception {
    identity: Identity,
    own: MacKey,
    jar: Jar,
    free: Meter,
    cookies: Meter,
    paid: Meter,
    /// The rates of cookies and of initiations with a cookie.
    prefixes: [Prefixes; 2],
    /// The shell's number of each peer, by public key.
    peers: BTreeMap<[u8; 32], u32>,
    recent: Recent,
}

impl Reception {
    /// The reception of an end without peers.
    #[must_use]
    pub fn new(identity: Identity, now: Instant, entropy: &mut impl Entropy) -> Self {
        Self {
            own: MacKey::of(identity.public()),
            identity,
            jar: Jar::new(now, entropy),
            free: Meter::new(FREE_PER_S, FREE_PER_S),
            cookies: Meter::new(COOKIES_PER_S, COOKIES_BURST),
            paid: Meter::new(PAID_PER_S, PAID_PER_S),
            prefixes: [PREFIX_COOKIES, PREFIX_PAID].map(|(per_s, burst)| Prefixes {
                key: entropy.draw(),
                full: Meter::new(per_s, burst),
                meters: Vec::new(),
            }),
            peers: BTreeMap::new(),
            recent: Recent::default(),
        }
    }

    /// Sets the number of the peer with this public key.
    pub fn insert(&mut self, peer: [u8; 32], number: u32) {
        self.peers.insert(peer, number);
    }

    /// Removes all peers.
    pub fn clear(&mut self) {
        self.peers.clear();
        self.recent = Recent::default();
    }

    /// Handles an initiation from `from`.
    pub fn admit(
        &mut self,
        initiation: &Initiation,
        from: SocketAddr,
        now: Instant,
        entropy: &mut impl Entropy,
    ) -> Admission {
        let has_cookie = initiation.mac2 != [0; MAC];
        let [_, paid] = &mut self.prefixes;
        // Under a flood the codes of prefixes beyond their rate need not be verified. The others are
        // verified first, because a forged source must not use up their rate.
        if has_cookie && !paid.may_take(from.ip(), now) && !self.paid.may_take(PAID_RESERVED, now) {
            return Admission::Limited;
        }
        let octets = initiation.encode();
        let covered = &octets[..Initiation::BEFORE_MAC1];
        if !self.own.is_mac1(covered, &initiation.mac1) {
            return Admission::Refused(Unread::Misdirected);
        }
        let is_paid = self.jar.is_paid(initiation, from, now, entropy);
        let [cookies, paid] = &mut self.prefixes;
        if !is_paid && !self.free.take(0.0, now) {
            let is_within = cookies.take(from.ip(), now);
            let rest = if is_within { 0.0 } else { COOKIES_RESERVED };
            if !self.cookies.take(rest, now) {
                return Admission::Limited;
            }
            let reply = self.jar.reply(&self.own, initiation, from, entropy);
            return reply.map_or(Admission::Limited, Admission::Cookie);
        }
        if let Some(peer) = self.recent.get(initiation) {
            return Admission::Copy(peer);
        }
        if is_paid {
            let is_within = paid.take(from.ip(), now);
            let rest = if is_within { 0.0 } else { PAID_RESERVED };
            if !self.paid.take(rest, now) {
                return Admission::Limited;
            }
        }
        let is_known = |peer: &[u8; 32]| self.peers.contains_key(peer);
        let opened = match open(&self.identity, initiation, is_known, entropy) {
            Ok(opened) => opened,
            Err(why) => return Admission::Refused(why),
        };
        let Some(&peer) = self.peers.get(&opened.peer) else {
            return Admission::Refused(Unread::Unknown(opened.peer));
        };
        self.recent.insert(initiation, peer);
        Admission::Opened(peer, Box::new(opened))
    }
}

/// The rates of source prefixes.
#[derive(Debug)]
struct Prefixes {
    key: [u8; 32],
    full: Meter,
    /// Empty until the first use.
    meters: Vec<Meter>,
}

impl Prefixes {
    fn take(&mut self, from: IpAddr, now: Instant) -> bool {
        let taken = self.of(from).map(|at| self.meters[at].take(0.0, now));
        taken.contains(&true)
    }

    /// Whether [`Self::take`] would succeed.
    fn may_take(&mut self, from: IpAddr, now: Instant) -> bool {
        let mut able = self.of(from).into_iter();
        able.any(|at| self.meters[at].may_take(0.0, now))
    }

    /// The two buckets of an address.
    fn of(&mut self, from: IpAddr) -> [usize; 2] {
        if self.meters.is_empty() {
            self.meters = vec![self.full; PREFIXES];
        }
        let code = match from {
            IpAddr::V4(v4) => {
                let prefix = v4.to_bits() >> (u32::BITS - PREFIX_V4);
                mac(&self.key, &[b"4", &prefix.to_be_bytes()])
            }
            IpAddr::V6(v6) => {
                let prefix = v6.to_bits() >> (u128::BITS - PREFIX_V6);
                mac(&self.key, &[b"6", &prefix.to_be_bytes()])
            }
        };
        let at = |code: [u8; 2]| usize::from(u16::from_be_bytes(code)) % PREFIXES;
        [at([code[0], code[1]]), at([code[2], code[3]])]
    }
}

/// Recently read initiations, by their ephemeral keys.
#[derive(Debug, Default)]
struct Recent {
    peers: BTreeMap<[u8; 32], u32>,
    order: VecDeque<[u8; 32]>,
}

fn ephemeral(initiation: &Initiation) -> [u8; 32] {
    let mut ephemeral = [0; 32];
    ephemeral.copy_from_slice(&initiation.noise[..32]);
    ephemeral
}

impl Recent {
    fn get(&self, initiation: &Initiation) -> Option<u32> {
        self.peers.get(&ephemeral(initiation)).copied()
    }

    fn insert(&mut self, initiation: &Initiation, peer: u32) {
        if self.order.len() >= RECENT
            && let Some(oldest) = self.order.pop_front()
        {
            self.peers.remove(&oldest);
        }
        let key = ephemeral(initiation);
        if self.peers.insert(key, peer).is_none() {
            self.order.push_back(key);
        }
    }
}
