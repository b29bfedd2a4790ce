//! InfiniBand: what an adapter does, and a software device that does the same.
//!
//! | file | what it does |
//! |---|---|
//! | `device` | what the network asks of an adapter, in the words of verbs |

mod device;
