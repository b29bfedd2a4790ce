//! Messages between ranks, above `sync` and below `array`.
//!
//! | folder | contents |
//! |---|---|
//! | `channel` | data that land in a slot of the receiver, told by one word |

pub mod channel;
