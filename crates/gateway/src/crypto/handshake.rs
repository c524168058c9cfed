//! Noise IK (The Noise Protocol Framework, revision 34, §7.5), with an optional pre-shared key
//! (§9).
//!
//! # Not implemented
//! - A responder that learns the initiator's key from the message: both ends know each other's key.

use snow::{
    Builder, HandshakeState,
    params::{DHChoice, NoiseParams},
    resolvers::{CryptoResolver, DefaultResolver},
};
use std::fmt;

use super::random::{Drawn, Entropy};
use crate::wire::{Initiation, NOISE_INITIATION, NOISE_RESPONSE, Response};

const PLAIN: &str = "Noise_IK_25519_ChaChaPoly_BLAKE2s";
const WITH_PSK: &str = "Noise_IKpsk2_25519_ChaChaPoly_BLAKE2s";
const PROLOGUE: &[u8] = b"anabranch gateway 1";

/// The keys that an operator configures.
#[derive(Clone)]
pub struct Keys {
    /// The private key of this end.
    pub private: [u8; 32],
    /// The public key of the other end.
    pub peer: [u8; 32],
    /// An additional key that both ends share.
    pub psk: Option<[u8; 32]>,
}

impl fmt::Debug for Keys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Keys")
    }
}

/// The result of a handshake.
#[derive(Clone, PartialEq, Eq)]
pub struct SessionKeys {
    /// The key for sent messages.
    pub send: [u8; 32],
    /// The key for received messages.
    pub receive: [u8; 32],
    /// The boot number of the other end.
    pub peer_boot: u64,
}

impl fmt::Debug for SessionKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SessionKeys")
            .field("peer_boot", &self.peer_boot)
            .finish_non_exhaustive()
    }
}

/// The public key of a private key.
#[must_use]
pub fn public_key(private: &[u8; 32]) -> [u8; 32] {
    let mut public = [0; 32];
    if let Some(mut dh) = DefaultResolver.resolve_dh(&DHChoice::Curve25519) {
        dh.set(private);
        public.copy_from_slice(dh.pubkey());
    }
    public
}

fn build(keys: &Keys, ephemeral: [u8; 32], initiator: bool) -> Result<HandshakeState, snow::Error> {
    let name = if keys.psk.is_some() { WITH_PSK } else { PLAIN };
    let params: NoiseParams = name.parse()?;
    let mut builder = Builder::with_resolver(params, Box::new(Drawn(ephemeral)))
        .local_private_key(&keys.private)?
        .prologue(PROLOGUE)?;
    if let Some(psk) = &keys.psk {
        builder = builder.psk(2, psk)?;
    }
    if initiator {
        builder.remote_public_key(&keys.peer)?.build_initiator()
    } else {
        builder.build_responder()
    }
}

/// A handshake that this end has begun and the other has not answered.
#[derive(Debug)]
pub struct Pending {
    state: HandshakeState,
    /// This end's index of the future session.
    pub index: u32,
    /// The first message, the same on every path.
    pub noise: [u8; NOISE_INITIATION],
}

impl Pending {
    /// Begins a handshake. `None` only if a configured key is invalid.
    #[must_use]
    pub fn begin(keys: &Keys, index: u32, boot: u64, entropy: &mut impl Entropy) -> Option<Self> {
        let mut state = build(keys, entropy.draw(), true).ok()?;
        let mut noise = [0; NOISE_INITIATION];
        let octets = state.write_message(&boot.to_be_bytes(), &mut noise).ok()?;
        (octets == NOISE_INITIATION).then_some(Self {
            state,
            index,
            noise,
        })
    }

    /// Reads the answer. An answer that is not authentic changes nothing, because the authentic one
    /// may still arrive.
    pub fn finish(&mut self, response: &Response) -> Option<SessionKeys> {
        let mut boot = [0; 32];
        let octets = self.state.read_message(&response.noise, &mut boot).ok()?;
        let peer_boot = u64::from_be_bytes(*boot.get(..octets)?.first_chunk()?);
        let (send, receive) = self.state.dangerously_get_raw_split();
        Some(SessionKeys {
            send,
            receive,
            peer_boot,
        })
    }
}

/// The answer to an initiation.
#[derive(Debug)]
pub struct Answer {
    /// The keys of the session.
    pub keys: SessionKeys,
    /// The second message.
    pub noise: [u8; NOISE_RESPONSE],
}

/// Reads an initiation and answers it. `None` if it is not authentic or not from the configured
/// peer.
#[must_use]
pub fn respond(
    keys: &Keys,
    boot: u64,
    initiation: &Initiation,
    entropy: &mut impl Entropy,
) -> Option<Answer> {
    let mut state = build(keys, entropy.draw(), false).ok()?;
    let mut peer_boot = [0; NOISE_INITIATION];
    let octets = state.read_message(&initiation.noise, &mut peer_boot).ok()?;
    if state.get_remote_static() != Some(&keys.peer) {
        return None;
    }
    let peer_boot = u64::from_be_bytes(*peer_boot.get(..octets)?.first_chunk()?);
    let mut noise = [0; NOISE_RESPONSE];
    let octets = state.write_message(&boot.to_be_bytes(), &mut noise).ok()?;
    if octets != NOISE_RESPONSE {
        return None;
    }
    let (receive, send) = state.dangerously_get_raw_split();
    let keys = SessionKeys {
        send,
        receive,
        peer_boot,
    };
    Some(Answer { keys, noise })
}
