//! Forward error correction: redundant packets bring lost ones back.
pub mod code;
pub mod crc32c;
pub mod gf256;
pub mod tinymt32;
