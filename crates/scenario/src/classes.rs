//! Classes of a configuration of `anabranch-gateway`, for a simulation of it.

use anabranch_document::{
    Error, Named,
    class::{Class, check},
    de,
    error::{Place, Sources},
    tree::{Node, parse_document},
};

use crate::Extensions;

/// Reads the `[class.NAME]` tables of a configuration in the order of the file, as the daemon does.
/// The `path` of a class must name one of the configuration's `[path.NAME]`.
///
/// # Errors
/// If the text is not TOML, or a class is invalid.
pub fn gateway_classes(text: &str, file: &str) -> Result<Named<Class>, Error> {
    let sources = Sources::new(file, text);
    let root =
        parse_document(text).map_err(|faults| sources.faults(faults, Place::new(0, 0..0)))?;
    let Some(node) = root.find(&["class"]) else {
        return Ok(Named::default());
    };
    let classes: Named<Class> =
        de::read(node, &Extensions::default()).map_err(|fault| sources.fault(fault, node.place))?;
    let paths = root.find(&["path"]).and_then(Node::as_table);
    let paths = paths.into_iter().flat_map(|paths| &paths.0);
    let paths: Vec<&str> = paths.map(|path| path.key.as_str()).collect();
    check(&classes, &paths).map_err(|wrong| {
        let place = root.locate(&wrong.path(&["class"]));
        sources.error(place, wrong.message.clone(), wrong.help.clone())
    })?;
    Ok(classes)
}
