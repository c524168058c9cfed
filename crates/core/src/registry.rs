//! How a component describes itself to the scenario parser, the schema, the docs, the command
//! line and the law suites.

/// Where an algorithm is specified. `items` are the sections, equations or figures implemented.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Source {
    /// The document, as people cite it: `RFC 9438`.
    pub id: &'static str,
    /// The places in it: `§4.2`.
    pub items: &'static [&'static str],
}

/// The static description that every registered component exports as `META`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Meta {
    /// The name that scenario files use, in kebab-case.
    pub name: &'static str,
    /// The name that people use.
    pub title: &'static str,
    /// One or two sentences: what it is and when one would want it.
    pub summary: &'static str,
    /// Where it is specified; never empty.
    pub sources: &'static [Source],
}
