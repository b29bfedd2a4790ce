//! The software fabric: a network that is a model, in virtual time.
//!
//! | file | what it does |
//! |---|---|
//! | `time` | virtual time |
//! | `machine` | the parameters of a machine: its processors, adapters, links |
//! | `links` | the shape of its network: which links a message takes |
//! | `model` | when a message has left, and when it arrives |
//! | `events` | what happens next |
//! | `cables` | what joins adapters that are modelled by code of their own |
//! | `faults` | what goes wrong, and when |
//! | `ranks`, `stacks` | ranks that run one at a time: coroutines, or threads that hand on a baton |
//!
//! Nothing here knows what a rank does, or what a message means: `simulated` does. Nothing here reads a clock or draws a random number. So
//! the same calls give the same times.

mod cables;
mod events;
mod faults;
mod links;
mod machine;
mod model;
mod ranks;
mod stacks;
mod time;

pub(super) use cables::{Adapters, Cables, Step, Wish};
pub(super) use events::Events;
pub(crate) use faults::Faults;
pub(super) use links::Shape;
pub(super) use machine::{Adapter, AgentTimes, Block, Driven, Machine, Node, Processor};
pub(super) use model::{Model, Next, Way};
pub(crate) use ranks::Form;
pub(super) use ranks::Ranks;
pub(super) use time::Picos;
