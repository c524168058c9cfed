//! Noise IKpsk2 (The Noise Protocol Framework, revision 34, §7.5 and §9). An end without a
//! pre-shared key uses zeros, so that the first message can be read before the peer is known.

use snow::{Builder, HandshakeState, params::NoiseParams};
use std::{fmt, sync::Arc};

use super::{
    curve::{Identity, Reading},
    random::{Drawn, Entropy},
};
use crate::wire::{Initiation, NOISE_INITIATION, NOISE_RESPONSE, Response};

const NAME: &str = "Noise_IKpsk2_25519_ChaChaPoly_BLAKE2s";
const PROLOGUE: &[u8] = b"anabranch gateway 3";
/// The message that the pre-shared key enters.
const PSK: usize = 2;

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

fn builder(
    identity: &Identity,
    ephemeral: [u8; 32],
    reading: Option<Arc<Reading>>,
) -> Result<Builder<'_>, snow::Error> {
    let params: NoiseParams = NAME.parse()?;
    let drawn = Drawn {
        ephemeral,
        identity: identity.clone(),
        reading,
    };
    Builder::with_resolver(params, Box::new(drawn))
        .local_private_key(identity.private())?
        .prologue(PROLOGUE)
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
    /// Begins a handshake with this end's boot number and a stamp. `None` only if a configured key
    /// is invalid.
    #[must_use]
    pub fn begin(
        identity: &Identity,
        keys: &Keys,
        index: u32,
        [boot, stamp]: [u64; 2],
        entropy: &mut impl Entropy,
    ) -> Option<Self> {
        let psk = keys.psk.unwrap_or_default();
        let builder = builder(identity, entropy.draw(), None).ok()?;
        let builder = builder.psk(2, &psk).ok()?;
        let builder = builder.remote_public_key(&keys.peer).ok()?;
        let mut state = builder.build_initiator().ok()?;
        let mut payload = [0; 16];
        payload[..8].copy_from_slice(&boot.to_be_bytes());
        payload[8..].copy_from_slice(&stamp.to_be_bytes());
        let mut noise = [0; NOISE_INITIATION];
        let octets = state.write_message(&payload, &mut noise).ok()?;
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

/// An initiation that was read. It is authentic: only the owner of the private key of `peer` can
/// have made it, but anyone can have repeated it.
#[derive(Debug)]
pub struct Opened {
    state: Box<HandshakeState>,
    /// The initiation.
    pub initiation: Initiation,
    /// The initiator's public key.
    pub peer: [u8; 32],
    /// The initiator's boot number.
    pub boot: u64,
    /// The initiator's stamp.
    pub stamp: u64,
}

/// The reason why an initiation was not read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unread {
    /// It is for another public key than this end's, or it is no initiation.
    Misdirected,
    /// The initiator, which has this public key by its own account, is unknown.
    Unknown([u8; 32]),
    /// It is not authentic.
    Unauthentic,
}

/// Reads an initiation of an initiator whose public key `is_known`.
///
/// # Errors
/// If the initiator is not known, or the initiation is not authentic.
pub fn open(
    identity: &Identity,
    initiation: &Initiation,
    is_known: impl FnOnce(&[u8; 32]) -> bool,
    entropy: &mut impl Entropy,
) -> Result<Opened, Unread> {
    let ephemeral = initiation.noise.first_chunk();
    let reading = Reading::new(*ephemeral.ok_or(Unread::Unauthentic)?);
    let drawn = entropy.draw();
    let mut payload = [0; NOISE_INITIATION];
    // The pre-shared key is set once the initiator is known.
    let state = || {
        let builder = builder(identity, drawn, Some(reading.clone())).ok()?;
        builder.psk(2, &[0; 32]).ok()?.build_responder().ok()
    };
    // Ends before the second exchange.
    let mut first = state().ok_or(Unread::Unauthentic)?;
    let is_read = first.read_message(&initiation.noise, &mut payload).is_ok();
    let initiator = reading.initiator().filter(|_| !is_read);
    let initiator = *initiator.ok_or(Unread::Unauthentic)?;
    if !is_known(&initiator) {
        return Err(Unread::Unknown(initiator));
    }
    let mut read = || {
        let mut state = state()?;
        let octets = state.read_message(&initiation.noise, &mut payload).ok()?;
        let [boot, stamp] = *payload.get(..octets)?.as_chunks::<8>().0 else {
            return None;
        };
        Some(Opened {
            peer: *state.get_remote_static()?.first_chunk()?,
            state: Box::new(state),
            initiation: *initiation,
            boot: u64::from_be_bytes(boot),
            stamp: u64::from_be_bytes(stamp),
        })
    };
    read().ok_or(Unread::Unauthentic)
}

/// The answer to an initiation.
#[derive(Debug)]
pub struct Answer {
    /// The keys of the session.
    pub keys: SessionKeys,
    /// The second message.
    pub noise: [u8; NOISE_RESPONSE],
}

impl Opened {
    /// Answers with this end's boot number.
    #[must_use]
    pub fn answer(mut self, psk: Option<&[u8; 32]>, boot: u64) -> Option<Answer> {
        self.state.set_psk(PSK, psk.unwrap_or(&[0; 32])).ok()?;
        let mut noise = [0; NOISE_RESPONSE];
        let octets = self
            .state
            .write_message(&boot.to_be_bytes(), &mut noise)
            .ok()?;
        if octets != NOISE_RESPONSE {
            return None;
        }
        let (receive, send) = self.state.dangerously_get_raw_split();
        let keys = SessionKeys {
            send,
            receive,
            peer_boot: self.boot,
        };
        Some(Answer { keys, noise })
    }
}
