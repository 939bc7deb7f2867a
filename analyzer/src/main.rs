//! The mostrace command.
fn main() {}
