//! Transcendental functions with identical results on every platform.
//!
//! The standard library uses the platform's C library for them, and these libraries differ in the
//! last bits, so that a run would depend on the machine. All functions here come from one pinned
//! pure-Rust crate (`libm`). `f64::sqrt` is correctly rounded everywhere (IEEE 754) and needs no
//! replacement.

pub use libm::{cbrt, cos, exp, expm1, log as ln, log1p, log2, log10, pow as powf, sin};

/// `x³`, in two multiplications.
#[must_use]
#[inline]
pub const fn cube(x: f64) -> f64 {
    x * x * x
}
