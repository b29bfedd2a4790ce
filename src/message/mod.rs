//! Messages between ranks, above `sync` and below `array`.
//!
//! | file, folder | contents |
//! |---|---|
//! | `channel` | messages that arrive in a slot of the receiver, which one word announces |
//! | `active` | active messages: handlers that run where a message arrives |
//! | `mailbox` | messages from anybody, by tags |
//! | `rings` | the ring of a member, and how it writes to those of the others: what the two stand on |
//! | `stage` | memory from which other members fetch long messages |

pub mod active;
pub mod channel;
pub mod mailbox;
mod rings;
mod stage;

use crate::sync::Group;

/// Memory of all members, which is given back when the last part of what was created in it is dropped.
#[derive(Debug)]
struct Block {
    group: Group,
    /// Where it begins in every member's segment.
    offset: usize,
}

impl Drop for Block {
    fn drop(&mut self) {
        self.group.inner.blocks().drop_block(self.offset, Vec::new());
    }
}
