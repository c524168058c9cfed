//! Transcendental functions that give the same bits on every platform.
//!
//! The standard library hands these to the platform's C library, and those differ in the last
//! bits; a run would then depend on the machine. All of them come from one pinned pure-Rust crate
//! (`libm`). `f64::sqrt` is correctly rounded everywhere (IEEE 754) and may be used as it is.

pub use libm::{cbrt, cos, exp, expm1, log as ln, log1p, log2, log10, pow as powf, sin};

/// `x³`, in two multiplications.
#[must_use]
#[inline]
pub const fn cube(x: f64) -> f64 {
    x * x * x
}
