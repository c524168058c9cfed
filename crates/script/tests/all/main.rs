//! Behaviour scripts on our endpoint and on wrong endpoints, and invalid scripts.

mod bad_scripts;
mod linux;
mod scripts;
mod wrong;
