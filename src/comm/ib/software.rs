//! `ib:soft`: ranks that are threads, each with a software device, all on one fabric.
//!
//! What joins them is what joins ranks over an adapter: active messages over queue pairs that connect on demand. It is how the protocols
//! run where no adapter is. Ranks of a node share memory, as on any network (`GA_RANKS_PER_NODE`).

use super::{
    cluster::{self, Cluster},
    links::DEPTHS,
    soft::{Fabric, Rules},
};
use crate::{
    comm::{
        one_machine,
        settings::{Device, Settings},
        start::{Body, Named, Ranks},
        threads,
    },
    error::Error,
};

/// See the module's essay.
pub(in crate::comm) const NETWORK: Named = Named { name: "ib", devices: &[("soft", Device::Soft)], ranks: Ranks::Threads, run };

fn run(settings: &Settings, body: &Body<'_>) -> Result<(), Error> {
    cluster::check(settings)?;
    let cluster = Cluster::new(settings)?;
    let fabric = Fabric::new(Rules { seed: settings.seed, ..Rules::default() });
    threads::run(settings, &|member| {
        one_machine::rank_over(
            settings,
            member,
            body,
            |member| {
                let fail = |error| Error::Launch(format!("the software device of InfiniBand: {error}"));
                cluster.wire(settings, member, fabric.open(DEPTHS).map_err(fail)?)
            },
            one_machine::leave,
        )
    })
}
