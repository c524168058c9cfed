//! Scenario files: their syntax, their resolution, and the messages of errors.

mod errors;
mod parameters;
mod random;
mod recording;
mod resolve;
mod schema;
mod size;
mod traces;
