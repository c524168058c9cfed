//! Self-description of a component, for the scenario parser, the schema, the docs, the command line
//! and the law suites.

/// The specification of an algorithm. `items` are the sections, equations or figures implemented.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Source {
    /// The document, as it is cited: `RFC 9438`.
    pub id: &'static str,
    /// The places in it: `§4.2`.
    pub items: &'static [&'static str],
}

/// The static description that every registered component exports as `META`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Meta {
    /// The name that scenario files use, in kebab-case.
    pub name: &'static str,
    /// The name for readers.
    pub title: &'static str,
    /// Description and purpose, in one or two sentences.
    pub summary: &'static str,
    /// Specifications; never empty.
    pub sources: &'static [Source],
}
