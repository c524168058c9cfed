//! What a diagnosis says of captures that are made by hand.
mod bounds;
mod findings;
mod limits;
mod make;
mod order;
mod path;
mod properties;
mod resets;
mod retransmissions;
mod silence;
mod trace;
mod work;
