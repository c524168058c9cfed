//! The declaration of a run's summary, with the structs of the live engine and of a scenario's
//! description.

use std::sync::LazyLock;

#[cfg(all(feature = "live", target_os = "linux"))]
use anabranch_live::LiveSummary;
use anabranch_results::definitions;
use serde_json::Value;

use crate::scenario::Description;

/// The schemas of all structs, by their names.
pub static DEFINITIONS: LazyLock<Value> = LazyLock::new(|| {
    definitions(|generator| {
        #[cfg(all(feature = "live", target_os = "linux"))]
        generator.subschema_for::<LiveSummary>();
        generator.subschema_for::<Description>();
    })
});
