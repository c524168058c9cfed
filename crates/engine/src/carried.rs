//! The bodies that the engine is compiled for.

use anabranch_core::{
    body::{Body, Length, Octets},
    units::Instant,
};

use crate::{
    Progress,
    network::Network,
    run::{Error, Finished, Simulation},
    topology::Compiled,
};

/// What packets of a run carry.
///
/// A crate that calls generic code compiles its own copy of it, and a run is nearly all of the engine. For [`Length`] these
/// functions are not generic: the copy in this crate is the only one. Another body takes the methods as they are.
pub trait Carried: Body {
    /// [`Simulation::compile`].
    ///
    /// # Errors
    /// As there.
    fn compile(simulation: Simulation<'_, Self>) -> Result<Compiled<Self>, Error> {
        simulation.compile_generic()
    }
    /// [`Simulation::run_with`].
    ///
    /// # Errors
    /// As there.
    fn run(
        simulation: Simulation<'_, Self>,
        report: &mut dyn FnMut(f64) -> Progress,
    ) -> Result<Finished<Self>, Error> {
        simulation.run_generic(report)
    }
    /// [`Network::run_before`].
    fn run_before(network: &mut Network<Self>, until: Instant) {
        network.run_before_generic(until);
    }
}

impl Carried for Length {
    fn compile(simulation: Simulation<'_, Self>) -> Result<Compiled<Self>, Error> {
        simulation.compile_generic()
    }
    fn run(
        simulation: Simulation<'_, Self>,
        report: &mut dyn FnMut(f64) -> Progress,
    ) -> Result<Finished<Self>, Error> {
        simulation.run_generic(report)
    }
    fn run_before(network: &mut Network<Self>, until: Instant) {
        network.run_before_generic(until);
    }
}

impl Carried for Octets {}
