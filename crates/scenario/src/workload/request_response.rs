//! A client that sends requests over one connection, and a server that answers them.

use anabranch_core::units::{Bytes, Duration};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Writes;

/// Parameters of requests and responses. The defaults equal netperf's `TCP_RR`: one byte in
/// each direction, one after the other.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct RequestResponse {
    /// Bytes of a request of the client, at `to`: 1 or more.
    #[schemars(extend("x-minimum" = "1 bytes"))]
    pub request: Bytes,
    /// The writes of each request: their number (the bytes of `request` are divided equally, and
    /// the first writes get one byte more if the division has a remainder), or a list of their
    /// sizes, such as `["100 bytes", "4 kB"]` for a header and a body; `request` is then their sum
    /// and can be omitted. Each write is a separate call, so that the effects of Nagle's algorithm
    /// (`transport.nagle`) and of delayed acknowledgments appear (RFC 896; RFC 1122 §4.2.3.4).
    #[serde(skip_serializing_if = "Writes::is_one")]
    pub writes: Writes,
    /// Bytes of a response of the server, at `from`: 1 or more.
    #[schemars(extend("x-minimum" = "1 bytes"))]
    pub response: Bytes,
    /// The writes of each response, in the form of `writes`.
    #[serde(skip_serializing_if = "Writes::is_one")]
    pub response_writes: Writes,
    /// The pause of the client between a response and its next request.
    pub think: Duration,
    /// Whether all copies of the flow (`count`) send their requests together: the first as soon as
    /// the copy's connection is established, the next when the last copy has its response. This is
    /// the synchronised read of a block that is striped over servers, which leads to TCP incast
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
