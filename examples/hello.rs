//! Every rank says who it is.

use global_arrays::prelude::*;

fn main() -> Result<(), Error> {
    run(|job| {
        println!("rank {} of {} on node {}, over {}", job.rank(), job.size(), job.node(), job.network());
        job.sync()
    })
}
