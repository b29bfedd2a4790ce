//! Networks whose own code runs in virtual time, over modelled cables.

use std::sync::Arc;

use super::settings::Settings;
use crate::{
    comm::{
        Network,
        node::Member,
        soft::{Adapters, Cables},
    },
    error::Error,
};

/// Makes what the ranks of a job have in common.
pub(in crate::comm) type Modelled = fn(&Settings, Arc<dyn Cables>) -> Result<Box<dyn Wiring>, Error>;

/// What joins the ranks of a job.
pub(in crate::comm) trait Wiring: Sync {
    /// The adapters to which the cables report arrivals.
    fn adapters(&self) -> Arc<dyn Adapters>;

    /// The network of a rank that has its turn, for ranks of other nodes.
    ///
    /// # Errors
    /// A resource cannot be had.
    fn network(&self, settings: &Settings, member: &Member) -> Result<Arc<dyn Network>, Error>;
}
