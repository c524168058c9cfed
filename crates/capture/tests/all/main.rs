//! Captures that are made here, byte by byte, and what the reader makes of them.

mod annotate;
mod compressed;
mod containers;
mod conversations;
mod links;
mod make;
mod properties;
