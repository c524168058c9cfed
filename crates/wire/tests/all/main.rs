//! Laws and examples of packets as octets, a module for each topic.

mod icmp;
mod ip;
mod segments;
mod support;
mod tcp;
