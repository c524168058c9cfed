//! Timing of handshakes, and the choice of the session in use.

use anabranch_core::{
    packet::Ecn,
    units::{Duration, Instant},
};
use std::collections::VecDeque;

use super::{OUTBOX, Transmit, Tunnel};
use crate::{
    crypto::{
        Entropy, Jar, Keys, MacKey, Meter, Pending, Session, SessionKeys, open_cookie, public_key,
        respond, with_mac2,
    },
    path::Route,
    wire::{CookieReply, Initiation, NOISE_INITIATION, NOISE_RESPONSE, PathId, Response},
};

/// A session is replaced after this time. Its keys open messages for the same time afterwards.
const REKEY: Duration = Duration::from_secs(120);
/// The end that answered waits longer, so that both do not begin at the same time.
const REKEY_ANSWERER: Duration = Duration::from_secs(130);
/// A session is replaced after this many messages on a path.
const REKEY_MESSAGES: u64 = 1 << 48;
/// Interval between copies of an initiation.
const RETRY: Duration = Duration::from_millis(250);
/// An initiation without an answer is replaced after this time.
const ATTEMPT: Duration = Duration::from_secs(5);
/// Another session is begun if the other end does not answer in a session for this time.
const PATIENCE: Duration = Duration::from_millis(500);
/// The largest number of sessions that wait for their first message.
const UNCONFIRMED: usize = 4;

/// A session that this end has answered, until data proves that the other end has the keys.
#[derive(Debug)]
struct Unconfirmed {
    session: Session,
    initiation: [u8; NOISE_INITIATION],
    response: [u8; NOISE_RESPONSE],
}

/// Sessions and handshakes.
#[derive(Debug)]
pub(super) struct Handshakes {
    boot: u64,
    current: Option<Session>,
    previous: Option<Session>,
    /// The last session, if it was not replaced in time: its numbers continue.
    lapsed: Option<Session>,
    unconfirmed: VecDeque<Unconfirmed>,
    confirmed: Option<[u8; NOISE_INITIATION]>,
    pending: Option<(Pending, Instant)>,
    retry: Instant,
    /// Whether this end's session is used if both begin at the same time.
    is_first: bool,
    own: MacKey,
    peer: MacKey,
    jar: Jar,
    meter: Meter,
    pub(super) count: u64,
}

impl Handshakes {
    pub(super) fn new(keys: &Keys, now: Instant, entropy: &mut impl Entropy) -> Self {
        Self {
            boot: u64::from_be_bytes(entropy.draw()),
            current: None,
            previous: None,
            lapsed: None,
            unconfirmed: VecDeque::new(),
            confirmed: None,
            pending: None,
            retry: now,
            is_first: public_key(&keys.private) < keys.peer,
            own: MacKey::of(&public_key(&keys.private)),
            peer: MacKey::of(&keys.peer),
            jar: Jar::new(now, entropy),
            meter: Meter::default(),
            count: 0,
        }
    }

    pub(super) fn is_up(&self) -> bool {
        self.current.is_some()
    }

    pub(super) fn current(&mut self) -> Option<&mut Session> {
        self.current.as_mut()
    }

    fn rekey_at(&self) -> Option<Instant> {
        let current = self.current.as_ref()?;
        if current.messages() >= REKEY_MESSAGES {
            return Some(current.since);
        }
        Some(
            current.since
                + if current.initiator {
                    REKEY
                } else {
                    REKEY_ANSWERER
                },
        )
    }

    /// The time at which a handshake must begin or its initiation must be repeated.
    fn initiate_at(&self, silent: bool) -> Option<Instant> {
        let Some(current) = &self.current else {
            return Some(self.retry);
        };
        let silent = silent.then(|| current.since + PATIENCE);
        let begin = silent.into_iter().chain(self.rekey_at()).min()?;
        Some(begin.max(self.retry))
    }

    fn expire_at(&self) -> Option<Instant> {
        let previous = self.previous.as_ref().and(self.current.as_ref());
        let previous = previous.map(|current| current.since + REKEY);
        let current = self
            .current
            .as_ref()
            .map(|current| current.since + REKEY_ANSWERER * 2);
        previous.into_iter().chain(current).min()
    }

    pub(super) fn timeout(&self, silent: bool, has_route: bool) -> Option<Instant> {
        let initiate = self.initiate_at(silent).filter(|_| has_route);
        initiate.into_iter().chain(self.expire_at()).min()
    }

    /// The session of a message; `true` if it was not confirmed yet.
    pub(super) fn session_of(&mut self, index: u32) -> Option<(&mut Session, bool)> {
        let known = self
            .current
            .iter_mut()
            .chain(&mut self.previous)
            .map(|session| (session, false));
        let waiting = self
            .unconfirmed
            .iter_mut()
            .map(|unconfirmed| (&mut unconfirmed.session, true));
        known
            .chain(waiting)
            .find(|(session, _)| session.index == index)
    }

    fn is_index_used(&self, index: u32) -> bool {
        let sessions = self.current.iter().chain(&self.previous);
        let waiting = self
            .unconfirmed
            .iter()
            .map(|unconfirmed| &unconfirmed.session);
        sessions
            .chain(waiting)
            .any(|session| session.index == index)
            || self
                .pending
                .as_ref()
                .is_some_and(|(pending, _)| pending.index == index)
    }

    fn fresh_index(&self, entropy: &mut impl Entropy) -> u32 {
        let mut index = u32::from_be_bytes(entropy.draw());
        while self.is_index_used(index) {
            index = index.wrapping_add(1);
        }
        index
    }

    /// Whether this end has just begun the current session.
    fn has_just_begun(&self, now: Instant) -> bool {
        let is_young =
            |session: &Session| session.initiator && now.saturating_since(session.since) < ATTEMPT;
        self.current.as_ref().is_some_and(is_young)
    }

    /// Makes a session current. Returns whether the other end has restarted since the last one.
    fn promote(&mut self, mut session: Session) -> bool {
        let before = self.current.take().or(self.lapsed.take());
        let restarted = before
            .as_ref()
            .is_some_and(|before| before.peer_boot != session.peer_boot);
        if let Some(before) = before.filter(|_| !restarted) {
            session.continue_from(&before);
            self.previous = Some(before);
        } else {
            self.previous = None;
        }
        self.current = Some(session);
        self.pending = None;
        self.count += 1;
        restarted
    }
}

impl Tunnel {
    /// Whether a session or a handshake of this end has the index. A shell with several tunnels
    /// uses it to find the tunnel of a datagram.
    #[must_use]
    pub fn has_index(&self, index: u32) -> bool {
        self.handshakes.is_index_used(index)
    }

    pub(super) fn advance_handshakes(&mut self) {
        let now = self.now;
        if self
            .handshakes
            .current
            .as_ref()
            .is_some_and(|current| now >= current.since + REKEY)
        {
            self.handshakes.previous = None;
        }
        if self
            .handshakes
            .current
            .as_ref()
            .is_some_and(|current| now >= current.since + REKEY_ANSWERER * 2)
        {
            self.handshakes.lapsed = self.handshakes.current.take();
        }
        let at = self.handshakes.initiate_at(self.needs_handshake());
        if self.has_route() && super::is_due(at, now) {
            self.initiate();
        }
    }

    /// Sends an initiation on every path that has a route.
    fn initiate(&mut self) {
        let now = self.now;
        let handshakes = &mut self.handshakes;
        handshakes.retry = now + RETRY;
        let is_fresh = |since: Instant| now.saturating_since(since) < ATTEMPT;
        if !handshakes
            .pending
            .as_ref()
            .is_some_and(|(_, since)| is_fresh(*since))
        {
            let index = handshakes.fresh_index(&mut self.entropy);
            let pending =
                Pending::begin(&self.config.keys, index, handshakes.boot, &mut self.entropy);
            handshakes.pending = pending.map(|pending| (pending, now));
        }
        let Some((pending, _)) = &handshakes.pending else {
            return;
        };
        for (id, path) in self.paths.iter() {
            let Some(route) = path.route else { continue };
            let initiation = with_mac2(
                id,
                pending.index,
                &pending.noise,
                &handshakes.peer,
                path.cookie.as_ref(),
            );
            if self.outbox.len() < OUTBOX {
                let transmit = Transmit {
                    path: id,
                    route,
                    ecn: Ecn::NotEct,
                };
                self.outbox
                    .push_back((transmit, initiation.encode().to_vec()));
            }
        }
    }

    pub(super) fn on_initiation(&mut self, initiation: &Initiation, route: Route) {
        let octets = initiation.encode();
        let handshakes = &mut self.handshakes;
        let is_for_us = handshakes
            .own
            .is_mac1(&octets[..Initiation::BEFORE_MAC1], &initiation.mac1);
        if !is_for_us {
            self.counters.refused_initiations += 1;
            return;
        }
        if handshakes.confirmed == Some(initiation.noise) {
            return;
        }
        // The same initiation arrives on every path.
        let known = handshakes
            .unconfirmed
            .iter()
            .find(|known| known.initiation == initiation.noise);
        if let Some(known) = known {
            let (index, response) = (known.session.index, known.response);
            return self.answer(initiation, index, response, route);
        }
        let (jar, now) = (&mut handshakes.jar, self.now);
        if handshakes.meter.is_over(now)
            && !jar.is_paid(initiation, route.remote, now, &mut self.entropy)
        {
            let reply = jar.reply(&handshakes.own, initiation, route.remote, &mut self.entropy);
            if let Some(reply) = reply {
                self.counters.cookies += 1;
                self.reply(initiation.path, route, reply.encode().to_vec());
            }
            return;
        }
        let Some(answer) = respond(
            &self.config.keys,
            handshakes.boot,
            initiation,
            &mut self.entropy,
        ) else {
            self.counters.refused_initiations += 1;
            return;
        };
        let index = handshakes.fresh_index(&mut self.entropy);
        let session = Session::new(&answer.keys, index, initiation.sender, false, now);
        if handshakes.unconfirmed.len() >= UNCONFIRMED {
            handshakes.unconfirmed.pop_front();
        }
        handshakes.unconfirmed.push_back(Unconfirmed {
            session,
            initiation: initiation.noise,
            response: answer.noise,
        });
        self.answer(initiation, index, answer.noise, route);
    }

    fn answer(
        &mut self,
        initiation: &Initiation,
        index: u32,
        noise: [u8; NOISE_RESPONSE],
        route: Route,
    ) {
        let mut response = Response {
            path: initiation.path,
            sender: index,
            receiver: initiation.sender,
            noise,
            mac1: [0; 16],
        };
        response.mac1 = self
            .handshakes
            .peer
            .mac1(&response.encode()[..Response::BEFORE_MAC1]);
        self.reply(initiation.path, route, response.encode().to_vec());
    }

    fn reply(&mut self, path: PathId, route: Route, datagram: Vec<u8>) {
        if self.outbox.len() < OUTBOX {
            let ecn = Ecn::NotEct;
            let transmit = Transmit { path, route, ecn };
            self.outbox.push_back((transmit, datagram));
        }
    }

    pub(super) fn on_response(&mut self, response: &Response) {
        let octets = response.encode();
        let handshakes = &mut self.handshakes;
        let Some((pending, _)) = &mut handshakes.pending else {
            return;
        };
        let is_ours = pending.index == response.receiver
            && handshakes
                .own
                .is_mac1(&octets[..Response::BEFORE_MAC1], &response.mac1);
        let keys: Option<SessionKeys> = if is_ours {
            pending.finish(response)
        } else {
            None
        };
        let Some(keys) = keys else { return };
        let session = Session::new(&keys, pending.index, response.sender, true, self.now);
        let restarted = handshakes.promote(session);
        self.on_session(restarted);
    }

    pub(super) fn on_cookie_reply(&mut self, reply: &CookieReply) {
        let handshakes = &self.handshakes;
        let (Some((pending, _)), Some(path)) =
            (&handshakes.pending, self.paths.get_mut(reply.path))
        else {
            return;
        };
        let sent = with_mac2(
            reply.path,
            pending.index,
            &pending.noise,
            &handshakes.peer,
            None,
        );
        if pending.index == reply.receiver
            && let Some(cookie) = open_cookie(&handshakes.peer, reply, &sent.mac1)
        {
            path.cookie = Some(cookie);
        }
    }

    /// Confirms a session that this end answered, because data has arrived under its keys.
    pub(super) fn confirm(&mut self, index: u32) {
        let handshakes = &mut self.handshakes;
        let place = handshakes
            .unconfirmed
            .iter()
            .position(|waiting| waiting.session.index == index);
        if let Some(mut waiting) = place.and_then(|place| handshakes.unconfirmed.remove(place)) {
            waiting.session.since = self.now;
            handshakes.confirmed = Some(waiting.initiation);
            if handshakes.is_first && handshakes.has_just_begun(self.now) {
                handshakes.previous = Some(waiting.session);
                return;
            }
            let restarted = handshakes.promote(waiting.session);
            self.on_session(restarted);
        }
    }

    /// Begins a session: every path is probed under it, so that the other end notices it too.
    fn on_session(&mut self, restarted: bool) {
        if restarted {
            self.restart();
        }
        for path in self.paths.values_mut() {
            path.liveness.probe_now(self.now);
        }
    }

    /// Handles a restart of the other end, which has lost its state: flows and reports begin again.
    fn restart(&mut self) {
        for path in self.paths.values_mut() {
            path.restart();
        }
        self.order.restart();
        self.rebuilder.restart();
        self.numbers.fill(0);
        self.lanes.forget_numbered();
        self.copy = None;
        self.clock_difference = None;
        self.counters.peer_restarts += 1;
    }
}
