//! Laws and examples of packets as octets, a module for each topic.

mod segments;
