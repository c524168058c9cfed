//! Laws, examples and golden traces of paths, with a folder for each part. They are a single
//! program because linking a program for each takes longer than running them.

mod cable;
mod cellular;
mod group;
mod heavy;
mod impair;
mod link_steps;
mod link_trace;
mod multipath;
mod queue;
mod wifi;
