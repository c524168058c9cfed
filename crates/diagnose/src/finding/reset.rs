//! Who ended a connection with a RST.

use crate::report::{Connection, Finding};

pub(super) fn find(connection: &Connection) -> Option<Finding> {
    let reset = connection.reset.as_ref()?;
    let end = match reset.by {
        "a" => &connection.a,
        _ => &connection.b,
    };
    Some(Finding {
        cause: "reset",
        share: 0.0,
        text: format!("{end} reset the connection."),
        packets: vec![reset.packet],
    })
}
