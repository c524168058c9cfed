use super::*;
use anabranch_congestion::Attached;
use anabranch_core::body::Length;

/// Thousands of connections may be idle; state for exceptional cases is created on demand.
#[test]
fn an_idle_endpoint_is_small() {
    let control = size_of::<Attached>();
    let bytes = size_of::<Endpoint<Length>>()
        + size_of::<Cold>()
        + size_of::<crate::receiver::Cold<Length>>()
        - control;
    assert!(
        bytes <= 1_056,
        "{bytes} bytes besides the {control} of the control"
    );
}
