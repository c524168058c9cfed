//! TCP: one sans-I/O endpoint, used by the simulator on lengths and by real packets on octets.
//!
//! An [`Endpoint`] receives segments and the time, and is queried for segments and for its next
//! deadline; there is no other interface. Variants of TCP differ in data: a [`Settings`] value,
//! made from a named [`Profile`] and a scenario's [`Overrides`].
#![forbid(unsafe_code)]

pub mod ack;
pub mod cause;
mod clock;
pub mod congestion_state;
mod congestion_window;
mod departure;
mod ecn;
pub mod endpoint;
mod mtu_search;
mod pacer;
mod peer_window;
pub mod persist;
pub mod policy;
pub mod profile;
pub mod receive_buffer;
mod receiver;
pub mod recovery;
pub mod refusal;
pub mod remedy;
mod retries;
pub mod rtt;
pub mod scoreboard;
pub mod send_buffer;
pub mod send_limit;
mod send_queue;
mod sender;
pub mod settings;
pub mod state;
pub mod stats;
pub mod window_log;
pub mod window_validation;

pub use cause::RetransmitCause;
pub use congestion_state::CongestionState;
pub use departure::{Departure, Outgoing};
pub use endpoint::{
    Agreed, Ending, Endpoint, FastOpenClient, FastOpenOutcome, FastOpenServer, HotData, HotSend,
    Role, most_syn_data,
};
pub use policy::{
    DelayedAck, EcnMode, MtuDiscovery, Receiver, Recovery, RecoveryPace, Segmentation, Timers,
    WindowRules,
};
pub use profile::{Profile, profiles};
pub use refusal::{Refusal, Refusals};
pub use send_limit::{LimitTimes, SendLimit};
pub use settings::{Overrides, Problem, Settings};
pub use state::State;
pub use stats::{Snapshot, Stats};
pub use window_log::{WindowChange, WindowEvent};
