//! A client that asks and a server that answers, again and again over one connection.

use anabranch_core::units::{Bytes, Duration};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Writes;

/// Parameters of requests and responses. The defaults are those of netperf's `TCP_RR`: one byte each
/// way, one after the other.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct RequestResponse {
    /// How much the client, at `to`, asks with: 1 byte or more.
    #[schemars(extend("x-minimum" = "1 bytes"))]
    pub request: Bytes,
    /// The writes of each request: their number (each has an equal part of `request`, the first ones a byte more if the number
    /// does not divide it), or a list of their sizes, such as `["100 bytes", "4 kB"]` for a header and a body; `request` is then
    /// their sum and can be left out. Each write is a separate call, so that Nagle's algorithm (`transport.nagle`) and delayed
    /// acknowledgments show (RFC 896; RFC 1122 §4.2.3.4).
    #[serde(skip_serializing_if = "Writes::is_one")]
    pub writes: Writes,
    /// How much the server, at `from`, answers with: 1 byte or more.
    #[schemars(extend("x-minimum" = "1 bytes"))]
    pub response: Bytes,
    /// The writes of each response, as `writes` has those of a request.
    #[serde(skip_serializing_if = "Writes::is_one")]
    pub response_writes: Writes,
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
const fn is_false(value: &bool) -> bool {
    !*value
}

impl RequestResponse {
    /// Bytes of the write `number` of a request, from 0; `None` after the last.
    #[must_use]
    pub fn request_part(&self, number: u32) -> Option<u64> {
        self.writes.part(self.request.get(), number)
    }
    /// Bytes of the write `number` of a response, from 0; `None` after the last.
    #[must_use]
    pub fn response_part(&self, number: u32) -> Option<u64> {
        self.response_writes.part(self.response.get(), number)
    }
}

impl Default for RequestResponse {
    fn default() -> Self {
        Self {
            request: Bytes::new(1),
            writes: Writes::default(),
            response: Bytes::new(1),
            response_writes: Writes::default(),
            think: Duration::ZERO,
            synchronized: false,
        }
    }
}
