//! Properties, examples and golden traces of error correction, one module per topic.

mod any_redundancy;
mod endpoint;
mod groups;
mod hold;
mod params;
mod support;
mod udp_transfer;
