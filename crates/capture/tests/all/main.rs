//! Captures that are made here, byte by byte, and what the reader makes of them.

mod compressed;
mod containers;
mod conversations;
mod links;
mod make;
mod properties;
