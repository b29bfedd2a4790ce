//! Messages between ranks, above `sync` and below `array`.
//!
//! | folder | contents |
//! |---|---|
//! | `channel` | messages that arrive in a slot of the receiver, which one word announces |

pub mod channel;
