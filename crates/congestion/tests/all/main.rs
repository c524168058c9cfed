//! Laws, examples and golden traces of congestion controls, a module for each topic.

mod abe;
mod bbr;
mod bbr3;
mod bic;
mod bic_linux;
mod compound;
mod cubic;
mod cubic_plus;
mod cubic_reduction;
mod cubic_segments;
mod dctcp;
mod golden;
mod htcp;
mod hystart;
mod laws;
mod laws_random;
mod params;
mod prague;
mod reno;
mod support;
mod unvalidated;
mod vegas;
mod vegas_linux;
mod westwood_plus;
