//! Filters by which a member's frames leave over another member (tc-mirred(8)).
//!
//! Two filters at the member's egress: LACPDUs pass, and all other frames are redirected. The queue
//! `clsact` that holds the filters is created if there is none, and deleted only if it was created here.

use std::io;

use super::{
    CREATE, EXCLUSIVE, Netlink,
    attributes::Writer,
    link::{TRAFFIC_PART, traffic},
};

const NEW_QDISC: u16 = 36;
const DELETE_QDISC: u16 = 37;
const GET_QDISC: u16 = 38;
const NEW_FILTER: u16 = 44;
const DELETE_FILTER: u16 = 45;
const GET_FILTER: u16 = 46;
const KIND: u16 = 1;
const OPTIONS: u16 = 2;

const CLSACT: u32 = 0xffff_0000;
const CLSACT_PARENT: u32 = 0xffff_fff1;
const EGRESS: u32 = 0xffff_fff3;
const INGRESS: u32 = 0xffff_fff2;
/// Priorities of the two filters.
const PASS: u32 = 58_001;
const REDIRECT: u32 = 58_002;
const SLOW_PROTOCOLS: u16 = 0x8809;
const ALL_PROTOCOLS: u16 = 3;
const MATCHALL_ACTIONS: u16 = 2;
const STOLEN: u32 = 4;
const EGRESS_REDIRECT: u32 = 1;

impl Netlink {
    /// Whether an interface has the queue `clsact` or `ingress`.
    pub fn has_filter_queue(&mut self, index: u32) -> bool {
        // Without one, the kernel refuses the request; it describes none of these queues in an answer.
        let request = traffic(index, CLSACT, CLSACT_PARENT, 0);
        self.get_if_any(GET_QDISC, &request).is_ok()
    }

    /// Redirects all frames of an interface except LACPDUs to another one. After a failure nothing
    /// remains; `is_ours` says whether that includes the queue `clsact`.
    ///
    /// # Errors
    /// If the kernel refuses.
    pub fn redirect(&mut self, from: u32, to: u32, is_ours: bool) -> io::Result<()> {
        let made = self.make_redirect(from, to);
        if made.is_err() {
            let _ = self.end_redirect(from, is_ours);
        }
        made
    }

    fn make_redirect(&mut self, from: u32, to: u32) -> io::Result<()> {
        let mut writer = Writer(traffic(from, CLSACT, CLSACT_PARENT, 0));
        writer.put_text(KIND, "clsact");
        let made = self.change(NEW_QDISC, CREATE | EXCLUSIVE, &writer.0);
        if let Err(error) = made
            && error.kind() != io::ErrorKind::AlreadyExists
        {
            return Err(error);
        }
        let _ = self.delete(from, REDIRECT, ALL_PROTOCOLS);
        let pass = filter(from, PASS, SLOW_PROTOCOLS, |_| {});
        match self.change(NEW_FILTER, CREATE | EXCLUSIVE, &pass) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            _ => {}
        }
        let redirect = filter(from, REDIRECT, ALL_PROTOCOLS, |options| {
            options.put_nested(MATCHALL_ACTIONS, |actions| {
                actions.put_nested(1, |action| {
                    action.put_text(1, "mirred").put_nested(2, |options| {
                        let parameters = [0, 0, STOLEN, 0, 0, EGRESS_REDIRECT, to];
                        let octets = parameters.map(u32::to_ne_bytes).concat();
                        options.put(2, &octets);
                    });
                });
            });
        });
        self.change(NEW_FILTER, CREATE | EXCLUSIVE, &redirect)
    }

    /// Ends the redirection of an interface's frames, and deletes the queue `clsact` if it is ours
    /// and has no other filters.
    ///
    /// # Errors
    /// If the kernel refuses.
    pub fn end_redirect(&mut self, from: u32, is_ours: bool) -> io::Result<()> {
        // There may be none, or no such interface.
        let _ = self.delete(from, REDIRECT, ALL_PROTOCOLS);
        let _ = self.delete(from, PASS, SLOW_PROTOCOLS);
        if !is_ours || !self.has_filter_queue(from) {
            return Ok(());
        }
        for parent in [EGRESS, INGRESS] {
            let others = self.list(GET_FILTER, &traffic(from, 0, parent, 0))?;
            if others.iter().any(|octets| octets.len() > TRAFFIC_PART) {
                return Ok(());
            }
        }
        self.change(DELETE_QDISC, 0, &traffic(from, CLSACT, CLSACT_PARENT, 0))
    }

    fn delete(&mut self, from: u32, priority: u32, protocol: u16) -> io::Result<()> {
        let info = info(priority, protocol);
        self.change(DELETE_FILTER, 0, &traffic(from, 0, EGRESS, info))
    }
}

fn info(priority: u32, protocol: u16) -> u32 {
    priority << 16 | u32::from(protocol.to_be())
}

fn filter(from: u32, priority: u32, protocol: u16, write: impl FnOnce(&mut Writer)) -> Vec<u8> {
    let mut writer = Writer(traffic(from, 0, EGRESS, info(priority, protocol)));
    writer.put_text(KIND, "matchall").put_nested(OPTIONS, write);
    writer.0
}
