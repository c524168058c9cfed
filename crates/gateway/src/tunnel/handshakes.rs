//! Timing of handshakes, and the choice of the session in use.

use anabranch_core::{packet::Ecn, units::Duration};

use super::{Config, OUTBOX, Transmit, Tunnel, hindrance::Observed};
use crate::{
    crypto::{
        Entropy, Identity, MacKey, Opened, Pending, Session, StampKey, Stamps, open_cookie,
        with_mac2,
    },
    path::Route,
    reception::Admission,
    time::Instant,
    wire::{
        CookieReply, Initiation, Inner, NOISE_INITIATION, NOISE_RESPONSE, PathId, Response,
        StampReply,
    },
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

/// The session of the other end's newest initiation, until data proves that it has the keys.
#[derive(Debug)]
struct Waiting {
    session: Session,
    initiation: [u8; NOISE_INITIATION],
    response: [u8; NOISE_RESPONSE],
}

/// The keys of stamp replies: for those of this end, and for those of the other end.
#[derive(Debug)]
struct StampKeys {
    own: StampKey,
    peer: StampKey,
}

/// Sessions and handshakes.
#[derive(Debug)]
pub(super) struct Handshakes {
    boot: u64,
    current: Option<Session>,
    previous: Option<Session>,
    /// The last session, if it was not replaced in time: its numbers continue.
    lapsed: Option<Session>,
    waiting: Option<Waiting>,
    confirmed: Option<[u8; NOISE_INITIATION]>,
    pending: Option<(Pending, Instant)>,
    retry: Instant,
    /// A session that this end has begun and the other has answered. The current one remains in use
    /// until data arrives under this one.
    fresh: Option<Session>,
    /// The time at which probes under `fresh` are repeated.
    confirm: Instant,
    stamps: Stamps,
    /// Computed at the first use.
    stamp_keys: Option<StampKeys>,
    /// Whether this end's session is used if both begin at the same time.
    is_first: bool,
    identity: Identity,
    own: MacKey,
    peer: MacKey,
    pub(super) count: u64,
    pub(super) observed: Observed,
}

impl Handshakes {
    pub(super) fn new(
        identity: &Identity,
        config: &Config,
        now: Instant,
        entropy: &mut impl Entropy,
    ) -> Self {
        let peer = &config.keys.peer;
        Self {
            boot: u64::from_be_bytes(entropy.draw()),
            current: None,
            previous: None,
            lapsed: None,
            waiting: None,
            confirmed: None,
            pending: None,
            retry: now,
            fresh: None,
            confirm: now,
            stamps: Stamps::new(config.epoch),
            stamp_keys: None,
            is_first: identity.public() < peer,
            identity: identity.clone(),
            own: MacKey::of(identity.public()),
            peer: MacKey::of(peer),
            count: 0,
            observed: Observed::default(),
        }
    }

    pub(super) fn is_up(&self) -> bool {
        self.current.is_some()
    }

    pub(super) fn has_fresh(&self) -> bool {
        self.fresh.is_some()
    }

    /// Seals a message under the current session, or under the one that is to be confirmed. Both
    /// use one sequence of numbers.
    pub(super) fn seal(
        &mut self,
        confirms: bool,
        path: PathId,
        inner: Inner,
        content: &[u8],
        datagram: &mut Vec<u8>,
    ) -> Option<u64> {
        let current = self.current.as_mut()?;
        if !confirms {
            return current.seal(path, inner, content, datagram);
        }
        let fresh = self.fresh.as_mut()?;
        fresh.continue_from(current);
        let number = fresh.seal(path, inner, content, datagram);
        current.continue_from(fresh);
        number
    }

    fn stamp_keys(&mut self, peer: &[u8; 32]) -> &StampKeys {
        let of = |from| StampKey::of(&self.identity, peer, from);
        self.stamp_keys.get_or_insert_with(|| StampKeys {
            own: of(self.identity.public()),
            peer: of(peer),
        })
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
        if let Some(fresh) = &self.fresh {
            return Some(fresh.since + ATTEMPT);
        }
        let Some(current) = &self.current else {
            return Some(self.retry);
        };
        let silent = silent.then(|| current.since + PATIENCE);
        let begin = silent.into_iter().chain(self.rekey_at()).min()?;
        Some(begin.max(self.retry))
    }

    /// Whether there is no session, or paths in use have not delivered the handshake that should
    /// have replaced it: then spare paths carry handshakes, too.
    fn is_overdue(&self, now: Instant) -> bool {
        let at = |current: &Session| current.since + REKEY_ANSWERER + ATTEMPT;
        self.current
            .as_ref()
            .is_none_or(|current| now >= at(current))
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
        let confirm = self.fresh.as_ref().map(|_| self.confirm);
        let times = initiate.into_iter().chain(confirm.filter(|_| has_route));
        times.chain(self.expire_at()).min()
    }

    /// The session of a message; `true` if it was not confirmed yet.
    pub(super) fn session_of(&mut self, index: u32) -> Option<(&mut Session, bool)> {
        let known = self
            .current
            .iter_mut()
            .chain(&mut self.previous)
            .map(|session| (session, false));
        let waiting = self.waiting.iter_mut().map(|waiting| &mut waiting.session);
        let waiting = waiting.chain(&mut self.fresh);
        let waiting = waiting.map(|session| (session, true));
        known
            .chain(waiting)
            .find(|(session, _)| session.index == index)
    }

    fn indices(&self) -> impl Iterator<Item = u32> {
        let sessions = self.current.iter().chain(&self.previous).chain(&self.fresh);
        let waiting = self.waiting.iter().map(|waiting| &waiting.session);
        let sessions = sessions.chain(waiting).map(|session| session.index);
        sessions.chain(self.pending.iter().map(|(pending, _)| pending.index))
    }

    fn fresh_index(&self, entropy: &mut impl Entropy) -> u32 {
        let mut index = u32::from_be_bytes(entropy.draw());
        while self.indices().any(|used| used == index) {
            index = index.wrapping_add(1);
        }
        index
    }

    /// Whether this end has just begun the current session or the next one, and the other end still
    /// has its keys: `peer_boot` is the start of the other end that began `waiting`.
    fn has_just_begun(&self, peer_boot: u64, now: Instant) -> bool {
        let is_young =
            |session: &&Session| session.initiator && now.saturating_since(session.since) < ATTEMPT;
        let mut begun = self
            .fresh
            .iter()
            .chain(self.current.iter().filter(is_young));
        begun.any(|session| session.peer_boot == peer_boot)
    }

    /// Whether a session that the other end has answered is used at once: there is no other, or the other end has restarted and lost its keys.
    fn is_used_at_once(&self, session: &Session) -> bool {
        let current = self.current.as_ref();
        current.is_none_or(|current| current.peer_boot != session.peer_boot)
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
        self.fresh = None;
        self.count += 1;
        self.observed = Observed::default();
        restarted
    }
}

impl Tunnel {
    /// The indices of the sessions and of the handshake of this end. A shell with several tunnels
    /// uses them to find the tunnel of a datagram. Another tunnel may have the same one.
    pub fn indices(&self) -> impl Iterator<Item = u32> {
        self.handshakes.indices()
    }

    pub(super) fn advance_handshakes(&mut self) {
        let now = self.now;
        let is_old = |session: &Session, age: Duration| now >= session.since + age;
        let handshakes = &mut self.handshakes;
        handshakes.fresh.take_if(|fresh| is_old(fresh, ATTEMPT));
        handshakes
            .waiting
            .take_if(|waiting| is_old(&waiting.session, REKEY));
        if self.needs_handshake() {
            self.use_fresh();
        }
        let handshakes = &mut self.handshakes;
        if handshakes.fresh.is_some() && now >= handshakes.confirm {
            handshakes.confirm = now + RETRY;
            let is_overdue = handshakes.is_overdue(now);
            for path in self.paths.values_mut() {
                let is_left_out = path.liveness.is_spare() && !is_overdue;
                path.confirm_due = path.route.is_some() && !is_left_out;
            }
        }
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
            self.use_fresh();
        }
        let at = self.handshakes.initiate_at(self.needs_handshake());
        if self.has_route() && super::is_due(at, now) {
            self.initiate();
        }
    }

    /// Sends an initiation on every path that has a route, except on spare paths at first. A path
    /// that is held back by its role carries few in the long run.
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
            let payload = [handshakes.boot, handshakes.stamps.next(now)];
            let keys = &self.config.keys;
            let identity = &handshakes.identity;
            let pending = Pending::begin(identity, keys, index, payload, &mut self.entropy);
            handshakes.pending = pending.map(|pending| (pending, now));
        }
        let Some((pending, _)) = &handshakes.pending else {
            return;
        };
        let is_overdue = handshakes.is_overdue(now);
        let there = self.paths.values();
        let there = there.filter(|path| path.route.is_some() && !path.is_down);
        let best = there.map(|path| path.liveness.role()).min();
        for (id, path) in self.paths.iter_mut() {
            let is_left_out = path.liveness.is_spare() && !is_overdue;
            let Some(route) = path.route.filter(|_| !is_left_out) else {
                continue;
            };
            let is_held = best.is_some_and(|best| best < path.liveness.role());
            if is_held && !path.initiations.take(now) {
                continue;
            }
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
                    is_mtu_probe: false,
                };
                self.outbox
                    .push_back((transmit, initiation.encode().to_vec()));
            }
        }
    }

    /// Handles an initiation at an end with its own reception.
    pub(super) fn on_initiation(&mut self, initiation: &Initiation, route: Route) {
        let Some(reception) = &mut self.reception else {
            self.counters.refused_initiations += 1;
            return;
        };
        match reception.admit(initiation, route.remote, self.now, &mut self.entropy) {
            Admission::Refused(_) => self.counters.refused_initiations += 1,
            Admission::Limited => self.counters.limited_initiations += 1,
            Admission::Cookie(reply) => {
                self.counters.cookies += 1;
                self.reply(initiation.path, route, reply.encode().to_vec());
            }
            Admission::Copy(_) => self.on_copy(initiation, route),
            Admission::Opened(_, opened) => self.on_opened(*opened, route),
        }
    }

    /// Handles an initiation that the shell's reception has read.
    pub fn handle_opened(&mut self, opened: Opened, route: Route, now: Instant) {
        self.set_now(now);
        self.is_advanced = false;
        self.on_opened(opened, route);
    }

    /// Handles an initiation that the shell's reception has recognized as a copy.
    pub fn handle_copy(&mut self, initiation: &Initiation, route: Route, now: Instant) {
        self.set_now(now);
        self.is_advanced = false;
        self.on_copy(initiation, route);
    }

    /// The same initiation arrives on every path.
    fn on_copy(&mut self, initiation: &Initiation, route: Route) {
        let handshakes = &self.handshakes;
        if handshakes.confirmed == Some(initiation.noise) {
            return;
        }
        match &handshakes.waiting {
            Some(waiting) if waiting.initiation == initiation.noise => {
                let (index, response) = (waiting.session.index, waiting.response);
                self.answer(initiation, index, response, route);
            }
            _ => self.on_stale(initiation, route),
        }
    }

    /// Handles an initiation whose stamp is not above the newest one: a replay, or the other end's
    /// clock is behind. It changes nothing here.
    fn on_stale(&mut self, initiation: &Initiation, route: Route) {
        self.counters.stale_initiations += 1;
        let handshakes = &mut self.handshakes;
        let Some(newest) = handshakes.stamps.newest() else {
            return;
        };
        let key = &handshakes.stamp_keys(&self.config.keys.peer).own;
        let reply = key.reply(initiation, newest, &mut self.entropy);
        if let Some(reply) = reply {
            self.reply(initiation.path, route, reply.encode().to_vec());
        }
    }

    fn on_opened(&mut self, opened: Opened, route: Route) {
        let initiation = opened.initiation;
        if self.handshakes.stamps.newest() == Some(opened.stamp) {
            return self.on_copy(&initiation, route);
        }
        let handshakes = &mut self.handshakes;
        if !handshakes.stamps.take(opened.stamp) {
            return self.on_stale(&initiation, route);
        }
        let psk = self.config.keys.psk.as_ref();
        let Some(answer) = opened.answer(psk, handshakes.boot) else {
            self.counters.refused_initiations += 1;
            return;
        };
        handshakes.observed.in_vain += u32::from(handshakes.waiting.is_some());
        let index = handshakes.fresh_index(&mut self.entropy);
        let session = Session::new(&answer.keys, index, initiation.sender, false, self.now);
        handshakes.waiting = Some(Waiting {
            session,
            initiation: initiation.noise,
            response: answer.noise,
        });
        self.answer(&initiation, index, answer.noise, route);
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
            let transmit = Transmit {
                path,
                route,
                ecn: Ecn::NotEct,
                is_mtu_probe: false,
            };
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
        if !is_ours {
            return;
        }
        let Some(keys) = pending.finish(response) else {
            handshakes.observed.is_unreadable = true;
            return;
        };
        let session = Session::new(&keys, pending.index, response.sender, true, self.now);
        handshakes.pending = None;
        let is_used_at_once = handshakes.is_used_at_once(&session);
        handshakes.fresh = Some(session);
        handshakes.confirm = self.now;
        if is_used_at_once || self.needs_handshake() {
            self.use_fresh();
        }
    }

    /// Uses the session that is to be confirmed, if there is one, because the current one is of no
    /// use.
    fn use_fresh(&mut self) {
        if let Some(fresh) = self.handshakes.fresh.take() {
            let restarted = self.handshakes.promote(fresh);
            self.on_session(restarted);
        }
    }

    /// Begins again with a stamp above the reported one.
    pub(super) fn on_stamp_reply(&mut self, reply: &StampReply) {
        let handshakes = &mut self.handshakes;
        let Some((pending, _)) = &handshakes.pending else {
            return;
        };
        if pending.index != reply.receiver {
            return;
        }
        let (path, index, peer) = (reply.path, pending.index, &handshakes.peer);
        let sent = with_mac2(path, index, &pending.noise, peer, None);
        let key = &handshakes.stamp_keys(&self.config.keys.peer).peer;
        if let Some(newest) = key.open(reply, &sent.mac1) {
            handshakes.stamps.raise(newest);
            handshakes.pending = None;
            handshakes.retry = self.now;
        }
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

    /// Confirms a session, because data has arrived under its keys.
    pub(super) fn confirm(&mut self, index: u32) {
        let handshakes = &mut self.handshakes;
        if let Some(fresh) = handshakes.fresh.take_if(|fresh| fresh.index == index) {
            // The other end uses it, and so has dropped one that it began.
            handshakes.waiting = None;
            let restarted = handshakes.promote(fresh);
            return self.on_session(restarted);
        }
        let begun = handshakes
            .waiting
            .as_ref()
            .map(|waiting| waiting.session.peer_boot);
        let is_ours = handshakes.is_first
            && begun.is_some_and(|boot| handshakes.has_just_begun(boot, self.now));
        if is_ours && handshakes.fresh.is_some() {
            return;
        }
        let Some(mut waiting) = handshakes
            .waiting
            .take_if(|waiting| waiting.session.index == index)
        else {
            return;
        };
        waiting.session.since = self.now;
        handshakes.confirmed = Some(waiting.initiation);
        if is_ours {
            handshakes.previous = Some(waiting.session);
            return;
        }
        let restarted = handshakes.promote(waiting.session);
        self.on_session(restarted);
    }

    /// Begins a session: paths are probed under it, so that the other end notices it too.
    fn on_session(&mut self, restarted: bool) {
        if restarted {
            self.restart();
        }
        for path in self
            .paths
            .values_mut()
            .filter(|path| !path.liveness.is_spare())
        {
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
