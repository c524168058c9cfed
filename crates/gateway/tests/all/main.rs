//! Tests of the tunnel's core.
mod wire;
