//! Diagnoses of hand-made captures.
mod acknowledged;
mod bounds;
mod copies;
mod findings;
mod limits;
mod make;
mod numbers;
mod one_sided;
mod order;
mod path;
mod properties;
mod resets;
mod retransmissions;
mod silence;
mod trace;
mod turns;
mod work;
