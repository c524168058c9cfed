//! Laws, examples and golden traces of error correction, a module for each topic.

mod any_redundancy;
mod endpoint;
mod groups;
mod hold;
mod params;
mod support;
