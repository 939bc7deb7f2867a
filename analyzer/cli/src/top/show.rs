// SPDX-License-Identifier: MIT OR Apache-2.0
//! The interface of what shows views: a screen, or lines.

use std::sync::mpsc::Receiver;

use mostrace_trace::live::View;

/// Shows views as they come.
pub trait Show {
    /// Shows views until there are no more or the user ends it. Returns the last one.
    fn run(&mut self, views: &Receiver<View>) -> anyhow::Result<Option<View>>;
}
