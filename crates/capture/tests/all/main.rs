//! Reads captures that the tests build byte by byte.

mod annotate;
mod compressed;
mod containers;
mod conversations;
mod links;
mod make;
mod properties;
