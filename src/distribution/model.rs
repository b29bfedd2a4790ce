//! The naive model.
