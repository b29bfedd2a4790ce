//! Ten pages to read in order. Each takes a few minutes and ends with a link to the next.
//!
//! 1. [A first job](first_job): start ranks, create an array, write and read it.
//! 2. [Patches](patches): select elements, and read, write or add to them.
//! 3. [Who owns what](ownership): how an array is distributed, and how to choose.
//! 4. [Visibility](visibility): when other ranks see what you wrote.
//! 5. [Epochs](epochs): work on your own part at the speed of plain memory.
//! 6. [Tasks and counters](tasks): balance load with a shared counter; locks and signals.
//! 7. [Channels](channels): data for one other rank, again and again.
//! 8. [Active messages and mailboxes](messages): work for whoever owns the data, and messages from anybody.
//! 9. [Ghost cells](ghosts): stencils, and copies of the elements around your block.
//! 10. [On a cluster, and when something is wrong](cluster): many machines, hangs, statistics.
//!
//! The programs are tested. They run on four ranks as threads of one process (`Launch::new().ranks(4).network("threads")`)
//! so that their output does not depend on your machine. In your own program, call [`run`](crate::run) instead.

pub mod channels;
pub mod cluster;
pub mod epochs;
pub mod first_job;
pub mod ghosts;
pub mod messages;
pub mod ownership;
pub mod patches;
pub mod tasks;
pub mod visibility;
