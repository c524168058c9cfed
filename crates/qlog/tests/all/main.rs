//! Reads hand-made qlogs.
mod reader;
