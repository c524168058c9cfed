//! Parameters of registered components: what is taken, what is refused, and with which message.

mod aqm;
mod cc;
mod fec;
mod group;
mod impair;
mod queue;
mod remedy;
