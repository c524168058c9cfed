//! A small separate format, read with positions, and all of its errors.

use anabranch_document::{
    Error,
    de::{self, Names},
    error::{Place, Sources},
    every::{Joints, Wrong, errors},
    tree::{Node, parse_document},
};
use proptest::prelude::*;

#[derive(Debug, serde::Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
struct Format {
    port: u16,
    #[serde(default)]
    path: std::collections::BTreeMap<String, Way>,
}

#[derive(Debug, serde::Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
struct Way {
    interface: String,
    backup: Option<bool>,
}

struct NoNames;

impl Names for NoNames {
    fn added(&self, _seam: &str) -> Vec<&str> {
        Vec::new()
    }
    fn later(&self, _seam: &str) -> &[&str] {
        &[]
    }
}

fn load(text: &str) -> Result<Format, Error> {
    let sources = Sources::new("test.toml", text);
    let start = Place::new(0, 0..0);
    let root = parse_document(text).map_err(|faults| sources.faults(faults, start))?;
    let wrong = |root: &Node| -> Result<Format, Wrong> {
        de::read::<Format>(root, &NoNames).map_err(|fault| Wrong {
            is_missing: fault.is_missing,
            error: sources.fault(fault, root.place),
            is_of_many: false,
        })
    };
    let joints = Joints {
        sections: &["path"],
        keys: &[],
    };
    wrong(&root).map_err(|first| errors(&root, first.error, joints, &|root| wrong(root).err()))
}

fn places(text: &str) -> Vec<(u32, u32)> {
    let error = load(text).expect_err("it is wrong");
    std::iter::once(&error)
        .chain(error.more())
        .map(|error| (error.line.unwrap_or(0), error.column.unwrap_or(0)))
        .collect()
}

#[test]
fn values_are_read() {
    let format = load("port = 5\n[path.a]\ninterface = \"eth0\"\n").expect("it is right");
    assert_eq!(format.port, 5);
    assert_eq!(format.path["a"].interface, "eth0");
}

#[test]
fn each_wrong_value_has_its_position() {
    let text = "port = 70000\nprot = 1\n[path.a]\ninterface = 5\nbackup = \"no\"\n[path.b]\nbakcup = true\n";
    assert_eq!(
        places(text),
        [(1, 8), (2, 1), (4, 13), (5, 10), (7, 1), (6, 1)]
    );
}

#[test]
fn each_line_that_is_not_toml_has_its_position() {
    assert_eq!(
        places("port = 5 x\n[path.a\n[path.b]\ninterface eth0\n"),
        [(1, 8), (2, 8), (4, 11)]
    );
}

#[test]
fn no_more_than_twenty_errors_are_reported() {
    let text = (0..50)
        .map(|i| format!("key{i} = 1"))
        .collect::<Vec<_>>()
        .join("\n");
    assert_eq!(places(&text).len(), 20);
    let told = load(&text).expect_err("it is wrong").to_string();
    assert!(told.ends_with("20 errors, and perhaps more"), "{told}");
}

proptest! {
    /// Any text is read, or rejected with a position in it.
    #[test]
    fn any_text_is_read_or_has_a_position(text in "([a-z=\\[\\]\".{} \n0-9#,-]|port = |\\[path.a\\]\n|interface = ){0,40}") {
        if let Err(error) = load(&text) {
            let lines = u32::try_from(text.split('\n').count()).expect("few lines");
            for one in std::iter::once(&error).chain(error.more()) {
                prop_assert!(one.line.is_some_and(|line| line <= lines), "{one}");
            }
        }
    }
}
