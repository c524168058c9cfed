//! What a diagnosis says of captures that are made by hand.
mod bounds;
mod findings;
mod limits;
mod make;
mod path;
mod properties;
mod retransmissions;
mod trace;
