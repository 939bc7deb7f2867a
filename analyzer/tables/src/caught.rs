// SPDX-License-Identifier: MIT OR Apache-2.0
//! The one place where a panic is caught: a library may panic over a file or a query, and then that is to blame, not the program. Our
//! own code does not panic over a file, so it is not called through here.

use std::any::Any;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};
use std::sync::Once;

thread_local! {
    /// True while this thread is in a library.
    static IS_IN: Cell<bool> = const { Cell::new(false) };
}

/// How the threads are named that polars works with; a panic in one of them goes on in the thread that called it.
const WORKER: &str = "polars";

/// Runs what a library does. If it panics, nothing is printed, and its message is returned.
///
/// # Errors
/// Returns the panic's message.
pub fn caught<T>(read: impl FnOnce() -> T) -> Result<T, String> {
    silence();
    let was_in = IS_IN.replace(true);
    // Nothing that the closure changes is used again after a panic.
    let done = catch_unwind(AssertUnwindSafe(read));
    IS_IN.set(was_in);
    done.map_err(|panic| message(&*panic))
}

/// Keeps panics that are caught from being printed; all others are printed as before.
fn silence() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let print = take_hook();
        set_hook(Box::new(move |panic| {
            let is_worker = std::thread::current()
                .name()
                .is_some_and(|name| name.starts_with(WORKER));
            if !IS_IN.get() && !is_worker {
                print(panic);
            }
        }));
    });
}

/// Returns a panic's message in one line.
fn message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
    let text = text.unwrap_or("a library failed");
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_becomes_one_line() {
        assert_eq!(caught(|| 7), Ok(7));
        let line = caught(|| panic!("at {}\nof 3", 4)).unwrap_err();
        assert_eq!(line, "at 4 of 3");
        assert_eq!(caught(|| [0_u8; 2].get(1).copied()), Ok(Some(0)));
        assert!(!IS_IN.get());
    }
}
