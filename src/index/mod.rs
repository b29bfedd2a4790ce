//! Indices.
