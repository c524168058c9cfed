//! Types of parameters: what is outside its bounds cannot be built, from a file or from code.

mod choice;
mod count;
mod in_order;
mod number;
mod or_stack;

pub(super) use self::in_order::in_order;
pub use self::{
    choice::{ReductionBase, RenoFriendly, WindowCount},
    count::{Packets, Samples},
    number::{
        CubicScale, DctcpGain, DecreaseFactor, Gain, Lifetimes, LossThreshold, SearchStep, Share,
        VirtualRtt,
    },
    or_stack::{OrStack, ShareOrStack, SlowStartLimit},
};
