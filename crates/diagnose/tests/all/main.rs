//! What a diagnosis says of captures that are made by hand.
mod bounds;
mod copies;
mod findings;
mod limits;
mod make;
mod numbers;
mod path;
mod properties;
mod retransmissions;
mod trace;
