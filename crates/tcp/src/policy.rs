//! Mechanisms that a stack profile selects, and the meaning of each choice.

mod delayed_ack;
mod ecn;
mod mtu_discovery;
mod receiver;
mod recovery;
mod segmentation;
mod timers;
mod window_rules;

pub use self::{
    delayed_ack::{DelayedAck, DelayedAckTable},
    ecn::EcnMode,
    mtu_discovery::MtuDiscovery,
    receiver::{Receiver, SackCompression},
    recovery::{Recovery, RecoveryPace},
    segmentation::Segmentation,
    timers::Timers,
    window_rules::WindowRules,
};
