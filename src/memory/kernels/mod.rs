//! Copy and arithmetic on memory that other ranks may write at the same time.
