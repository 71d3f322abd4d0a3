//! The requirement catalogue.

pub mod rewrite;
pub mod rule;
