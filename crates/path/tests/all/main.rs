//! Laws, examples and golden traces of paths, a folder for each part. They are one program because linking one for each takes
//! longer than running them.

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
