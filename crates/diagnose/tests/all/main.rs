//! What a diagnosis says of captures that are made by hand.
mod acknowledged;
mod bounds;
mod findings;
mod limits;
mod make;
mod one_sided;
mod path;
mod properties;
mod retransmissions;
mod trace;
mod turns;
