//! A client that asks and a server that answers, again and again over one connection.

use anabranch_core::units::{Bytes, Duration};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Parameters of requests and responses. The defaults are those of netperf's `TCP_RR`: one byte each
/// way, one after the other.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct RequestResponse {
    /// How much the client, at `to`, asks with: 1 byte or more.
    #[schemars(extend("x-minimum" = "1 bytes"))]
    pub request: Bytes,
    /// In how many writes the client asks, each with its part of `request`; the first ones have a byte more where it does not
    /// divide. Each is a call of its own, as of a program that writes a header and then a body, so that Nagle's algorithm
    /// (`transport.nagle`) and delayed acknowledgments show (RFC 896; RFC 1122 §4.2.3.4).
    #[schemars(extend("x-minimum" = 1))]
    #[serde(skip_serializing_if = "is_one")]
    pub writes: u32,
    /// How much the server, at `from`, answers with: 1 byte or more.
    #[schemars(extend("x-minimum" = "1 bytes"))]
    pub response: Bytes,
    /// How long the client waits after a response before it asks again.
    pub think: Duration,
    /// Whether all copies of the flow (`count`) ask together: each asks as soon as its connection stands, and again when the last
    /// of them has its response. This is the synchronised read of a block that is striped over servers, whose end is TCP's incast
    /// (Phanishayee et al., FAST 2008). Only in the simulator.
    #[serde(skip_serializing_if = "is_false")]
    pub synchronized: bool,
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde calls it with a reference"
)]
const fn is_one(writes: &u32) -> bool {
    *writes == 1
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde calls it with a reference"
)]
const fn is_false(value: &bool) -> bool {
    !*value
}

impl RequestResponse {
    /// Bytes of each write of a request.
    pub fn parts(&self) -> impl Iterator<Item = u64> + use<> {
        let (whole, writes) = (self.request.get(), u64::from(self.writes.max(1)));
        (0..writes).map(move |number| whole / writes + u64::from(number < whole % writes))
    }
}

impl Default for RequestResponse {
    fn default() -> Self {
        Self {
            request: Bytes::new(1),
            writes: 1,
            response: Bytes::new(1),
            think: Duration::ZERO,
            synchronized: false,
        }
    }
}
