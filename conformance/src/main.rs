//! The `turnwire` command.
fn main() {}
