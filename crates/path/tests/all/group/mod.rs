//! Link groups.

mod control;
mod group;
mod lacp;
mod support;
