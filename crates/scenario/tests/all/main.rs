//! Scenario files: what they may say, what they become, and which message a wrong one gets.

mod errors;
mod parameters;
mod random;
mod recording;
mod resolve;
mod schema;
mod size;
mod traces;
