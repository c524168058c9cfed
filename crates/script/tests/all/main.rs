//! Behaviour scripts: on our endpoint, on wrong endpoints, and scripts that are no scripts.

mod bad_scripts;
mod scripts;
mod wrong;
