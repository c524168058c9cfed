//! Mechanisms among which a stack profile chooses, and what each choice stands for.

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
