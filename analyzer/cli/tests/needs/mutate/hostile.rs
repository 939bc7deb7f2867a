// SPDX-License-Identifier: MIT OR Apache-2.0
//! Names chosen to do harm.

use super::random::Random;

const NAMES: [&[u8]; 22] = [
    b"",
    b"/",
    b"//",
    b"..",
    b"../../../../etc/passwd",
    b"\0",
    b"\x1b[2J\x1b]0;owned\x07",
    b"\x9b31m",
    "\u{9b}31m".as_bytes(),
    b"a\nb\rc\td",
    b"\xff\xfe\x80",
    "gpj.\u{202e}txt\u{2066}\u{2069}".as_bytes(),
    "a\u{ad}b\u{180e}c\u{200d}d\u{2800}e\u{3164}f\u{e0041}g\u{fe0f}\u{7f}".as_bytes(),
    "\u{a0}\u{3000}".as_bytes(),
    b"=cmd|' /C calc'!A0",
    b"@SUM(1)",
    b"</script><script>alert(1)</script>",
    b"\"',;:\\",
    b"x.db-journal",
    b"-wal",
    b"(journal)",
    b"%s%n{}",
];

/// Returns a name's bytes, sometimes very many.
pub fn name(random: &mut Random) -> Vec<u8> {
    let name = NAMES[random.below(NAMES.len() as u64) as usize];
    match random.below(6) {
        0 => name.repeat(1 + random.below(300) as usize),
        _ => name.to_vec(),
    }
}

/// Returns a name for fields that take only text.
pub fn text(random: &mut Random) -> String {
    String::from_utf8_lossy(&name(random)).into_owned()
}
