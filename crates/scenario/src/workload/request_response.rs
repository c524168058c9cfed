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
    /// How much the server, at `from`, answers with: 1 byte or more.
    #[schemars(extend("x-minimum" = "1 bytes"))]
    pub response: Bytes,
    /// How long the client waits after a response before it asks again.
    pub think: Duration,
}

impl Default for RequestResponse {
    fn default() -> Self {
        Self {
            request: Bytes::new(1),
            response: Bytes::new(1),
            think: Duration::ZERO,
        }
    }
}
