//! Rows of whole arrays.

use global_arrays::prelude::*;

use crate::measure::Bench;

pub fn whole(_bench: &Bench<'_>) -> Result<(), Error> {
    Ok(())
}
pub fn transpose(_bench: &Bench<'_>) -> Result<(), Error> {
    Ok(())
}
pub fn matmul(_bench: &Bench<'_>) -> Result<(), Error> {
    Ok(())
}
