//! The software fabric: a network that is a model, in virtual time.
//!
//! | file | contents |
//! |---|---|
//! | `time` | virtual time |
//! | `machine` | parameters of a machine |
//! | `links` | which links a message takes |
//! | `model` | when a message leaves and arrives |
//! | `events` | what happens next |
//! | `cables` | what joins adapters with code of their own |
//! | `fabric` | what adapters in software have in common |
//! | `faults` | what goes wrong |
//! | `ranks`, `stacks` | ranks that run one at a time |
//!
//! Only `simulated` knows what a rank does, or what a message means. Nothing here reads a clock, and random numbers come from the seed: the same
//! calls give the same times.

mod cables;
mod events;
pub(super) mod fabric;
mod faults;
mod links;
mod machine;
mod model;
mod ranks;
mod stacks;
mod time;

pub(super) use cables::{Adapters, Cables, SetupStep, Wish};
pub(super) use events::Events;
pub(crate) use faults::Faults;
pub(super) use links::Shape;
pub(super) use machine::{Adapter, AgentTimes, Block, Driven, Machine, Node, Processor};
pub(super) use model::{Model, NextLeg, Way};
pub(crate) use ranks::Form;
pub(super) use ranks::RankTurns;
pub(super) use time::Picos;
