//! Impairments.

mod fates;
mod gilbert_elliott;
mod jitter;
mod policer;
mod support;
