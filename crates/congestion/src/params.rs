//! Parameter types. A value out of bounds cannot be built, from a file or from code.

mod choice;
mod count;
mod in_order;
mod number;
mod number_or;
mod or_stack;

pub(super) use self::in_order::in_order;
pub use self::{
    choice::{Form, ReductionBase, RenoFriendly, WindowCount},
    count::{Packets, Samples},
    number::{
        CubicScale, DctcpGain, DecreaseFactor, EcnFactor, Gain, Lifetimes, LossThreshold,
        SearchStep, Share, VirtualRtt,
    },
    number_or::{DecreaseFactorOrStack, EcnFactorOrLoss, SearchStepOrStack, ShareOrStack},
    or_stack::{OrStack, SlowStartLimit},
};
