//! TOML documents whose every error names its place, what was expected, and the nearest valid name.
//!
//! [`tree::parse_document`] reads a text into a tree that knows where each key and value stands; [`de::read`] reads types with
//! `serde` derives from it; [`every::errors`] finds what else is wrong. Scenarios and configurations are such documents.
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
