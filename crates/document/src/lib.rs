//! TOML documents in which every error has its position, the expected value, and the nearest valid
//! name.
//!
//! [`tree::parse_document`] reads a text into a tree with the position of each key and value.
//! [`de::read`] reads types with `serde` derives from it. [`every::errors`] finds further errors.
//! Scenarios and configurations are such documents.
#![forbid(unsafe_code)]

pub mod class;
pub mod de;
pub mod error;
pub mod every;
mod named;
pub mod select;
pub mod tree;

pub use error::{Error, nearest, synonyms};
pub use named::Named;
