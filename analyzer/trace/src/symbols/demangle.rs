// SPDX-License-Identifier: MIT OR Apache-2.0
//! The names of functions as their programmers wrote them.

use std::fmt::{self, Write};

use cpp_demangle::{DemangleOptions, ParseOptions, Symbol};

/// The longest name that is written, bytes: a short symbol may stand for a name of any length.
const LONGEST: usize = 1 << 10;
/// How deep the parts of a name in C++ may be nested.
const DEEPEST: u32 = 64;

/// Returns the name of a function in Rust or C++, without Rust's hash, and of C++ without parameters and without what it returns, as
/// `perf` shows it. None if the symbol is not of such a function, or its name is too long.
pub(super) fn demangle(symbol: &[u8]) -> Option<String> {
    let symbol = std::str::from_utf8(symbol).ok()?;
    let mut name = Name::default();
    match rustc_demangle::try_demangle(symbol) {
        Ok(demangled) => write!(name, "{demangled:#}").ok()?,
        Err(_) => write_cpp(&mut name, symbol)?,
    }
    Some(name.0)
}

fn write_cpp(name: &mut Name, symbol: &str) -> Option<()> {
    // The parser takes any word for the name of a type.
    symbol.strip_prefix("_Z")?;
    let parsing = ParseOptions::default().recursion_limit(DEEPEST);
    let parsed = Symbol::new_with_options(symbol, &parsing).ok()?;
    let options = DemangleOptions::new()
        .no_params()
        .no_return_type()
        .recursion_limit(DEEPEST);
    parsed.structured_demangle(name, &options).ok()
}

/// Text that does not become too long.
#[derive(Default)]
struct Name(String);

impl Write for Name {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        if self.0.len().saturating_add(text.len()) > LONGEST {
            return Err(fmt::Error);
        }
        self.0.push_str(text);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The names are those that binutils' `c++filt -p` prints, but without the hash of a crate.
    #[test]
    fn names_are_those_of_the_source() {
        for (symbol, name) in [
            ("_Z3foov", "foo"),
            (
                "_ZNSt6vectorIiSaIiEE9push_backERKi",
                "std::vector<int, std::allocator<int> >::push_back",
            ),
            (
                "_ZNK5boost6system14error_category23default_error_conditionEi",
                "boost::system::error_category::default_error_condition",
            ),
            (
                "_ZN8mostrace6export6folded5write17h0123456789abcdefE",
                "mostrace::export::folded::write",
            ),
            (
                "_ZN4core3ptr42drop_in_place$LT$alloc..string..String$GT$17h0123456789abcdefE",
                "core::ptr::drop_in_place<alloc::string::String>",
            ),
            (
                "_RNvCskwGfYPst2Cb_3foo16example_function",
                "foo::example_function",
            ),
        ] {
            assert_eq!(demangle(symbol.as_bytes()).as_deref(), Some(name));
        }
        for symbol in [
            "main",
            "__libc_start_main",
            "",
            "_Z",
            "int",
            "i",
            "_R",
            "_Zxx",
        ] {
            assert_eq!(demangle(symbol.as_bytes()), None, "{symbol}");
        }
    }

    /// Returns the symbol of a function of so many pairs, each of which has the one before it twice.
    fn of_pairs(number: u32) -> String {
        let pairs: String = (0..number)
            .map(|nth| {
                let last = nth.checked_sub(1).map_or(String::new(), |last| {
                    char::from_digit(last, 36).unwrap().to_string()
                });
                let last = last.to_ascii_uppercase();
                format!("S_IS{last}_S{last}_E")
            })
            .collect();
        format!("_Z1fI4pairIiiE{pairs}Evv")
    }

    #[test]
    fn a_short_symbol_of_a_long_name_stays_as_it_is() {
        let short = demangle(of_pairs(3).as_bytes()).unwrap();
        assert!(short.starts_with("f<pair<int, int>, "), "{short}");
        assert_eq!(demangle(of_pairs(30).as_bytes()), None);
    }

    proptest! {
        #[test]
        fn any_symbol_is_survived(symbol in "(_Z|_R|_ZN)?[ -~]{0,200}", nested in 0_usize..3000) {
            demangle(symbol.as_bytes());
            let deep = format!("_Z1f{}i", "P".repeat(nested));
            prop_assert!(demangle(deep.as_bytes()).is_none_or(|name| name.len() <= LONGEST));
        }
    }
}
