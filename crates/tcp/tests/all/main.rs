//! Laws, examples and golden traces of TCP, a module for each topic.

mod accecn;
mod bsd44_lite;
mod connection;
mod control;
mod counted_deliveries;
mod dctcp_ecn;
mod flow_control;
mod hostile;
mod hot;
mod hot_recovery;
mod kernel_acks;
mod long_times;
mod loss_detection;
mod losses;
mod ncr;
mod path_mtu;
mod profiles;
mod rates;
mod receive_window;
mod recovery;
mod remedies;
mod reordering;
mod send_limit;
mod spurious;
mod support;
mod transfer;
