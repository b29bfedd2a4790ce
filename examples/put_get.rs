//! Every rank writes the block of its neighbour, then reads its own.

use global_arrays::prelude::*;

const N: usize = 100;

fn main() -> Result<(), Error> {
    run(|job| {
        let a = GlobalArray::<i64, Ix2>::builder(job, [N, N]).create()?;
        let (me, ranks) = (job.rank(), job.size());
        for block in a.blocks((me + 1) % ranks) {
            a.put(&block.patch, &Array2::from_elem(*block.patch.count(), me as i64))?;
        }
        job.sync()?;
        let neighbour = ((me + ranks - 1) % ranks) as i64;
        for block in a.blocks(me) {
            if a.get(&block.patch)?.iter().any(|&x| x != neighbour) {
                return Err(Error::other(format!("block {:?} is not from rank {neighbour}", block.patch)));
            }
        }
        if me == 0 {
            println!("{ranks} ranks wrote their neighbours' blocks");
        }
        Ok(())
    })
}
