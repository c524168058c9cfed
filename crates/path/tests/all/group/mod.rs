//! Link groups.

mod control;
mod lacp;
mod support;
mod switching;
