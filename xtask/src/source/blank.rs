//! Blanks the comments and literals of Rust code, so that a search finds code only.
//!
//! Every byte that is blanked becomes a space, apart from line ends: lines and columns stay. Source: the lexical
//! structure chapter of the Rust Reference; strings and characters keep their quotes.

/// Returns the code with comments and the insides of literals blanked.
pub(super) fn comments_and_literals(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut blank = bytes.to_vec();
    let mut at = 0;
    while at < bytes.len() {
        let rest = &bytes[at..];
        let after_word = at > 0 && is_word(bytes[at - 1]);
        let (length, keep) = match rest {
            [b'/', b'/', ..] => (line_comment(rest), 0),
            [b'/', b'*', ..] => (block_comment(rest), 0),
            [b'r', b'"' | b'#', ..] if !after_word || is_raw_prefix(bytes, at) => (raw_string(rest), 0),
            [b'"', ..] => (string(rest), 1),
            [b'\'', ..] => (character(rest), 1),
            _ => (0, 0),
        };
        for byte in blank.iter_mut().skip(at + keep).take(length.saturating_sub(2 * keep)) {
            if *byte != b'\n' {
                *byte = b' ';
            }
        }
        at += length.max(1);
    }
    // Only whole literals and comments are blanked, so the rest is still text.
    String::from_utf8_lossy(&blank).into_owned()
}

pub(super) fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte >= 0x80
}

/// Whether the `r` here follows the lone `b` or `c` of a byte or C string.
fn is_raw_prefix(bytes: &[u8], at: usize) -> bool {
    matches!(bytes[at - 1], b'b' | b'c') && (at < 2 || !is_word(bytes[at - 2]))
}

fn line_comment(rest: &[u8]) -> usize {
    rest.iter().position(|&byte| byte == b'\n').unwrap_or(rest.len())
}

fn block_comment(rest: &[u8]) -> usize {
    let (mut depth, mut at) = (0_usize, 0);
    while at < rest.len() {
        match &rest[at..] {
            [b'/', b'*', ..] => (depth, at) = (depth + 1, at + 2),
            [b'*', b'/', ..] => (depth, at) = (depth - 1, at + 2),
            _ => at += 1,
        }
        if depth == 0 {
            break;
        }
    }
    at
}

/// `r"..."` or `r#"..."#`; a raw identifier such as `r#type` is no literal.
fn raw_string(rest: &[u8]) -> usize {
    let hashes = rest[1..].iter().take_while(|&&byte| byte == b'#').count();
    let open = 1 + hashes;
    if rest.get(open) != Some(&b'"') {
        return 0;
    }
    let mut close = vec![b'"'];
    close.resize(1 + hashes, b'#');
    let body = &rest[open + 1..];
    let end = body.windows(close.len()).position(|window| window == close);
    end.map_or(rest.len(), |end| open + 1 + end + close.len())
}

fn string(rest: &[u8]) -> usize {
    let mut at = 1;
    while at < rest.len() {
        match rest[at] {
            b'\\' => at += 2,
            b'"' => return at + 1,
            _ => at += 1,
        }
    }
    rest.len()
}

/// A character literal, or 0 for a lifetime.
fn character(rest: &[u8]) -> usize {
    let inside = match rest.get(1) {
        Some(b'\\') => 3,
        Some(&first) => 1 + utf8_length(first),
        None => return 0,
    };
    // An escape such as `\u{1F600}` is longer, but bounded.
    let limit = if inside == 3 { 12 } else { inside };
    (inside..=limit).find(|&end| rest.get(end) == Some(&b'\'')).map_or(0, |end| end + 1)
}

fn utf8_length(first: u8) -> usize {
    match first {
        0..0x80 => 1,
        0x80..0xE0 => 2,
        0xE0..0xF0 => 3,
        _ => 4,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The code with runs of spaces made one.
    fn code(text: &str) -> String {
        let blank = comments_and_literals(text);
        assert_eq!(blank.len(), text.len());
        blank.split_whitespace().collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn comments_go() {
        assert_eq!(code("a // b\nc /* d /* e */ f */ g"), "a c g");
        assert_eq!(code("a /* never closed"), "a");
    }

    #[test]
    fn insides_of_literals_go() {
        assert_eq!(code(r#"f("a \" // b", x)"#), "f(\" \", x)");
        assert_eq!(code("f(r#\"a \" b\"#, r\"\\\", y)"), "f( , , y)");
        assert_eq!(code("f(b\"a\", br\"a\\\", y)"), "f(b\" \", b , y)");
        assert_eq!(code(r"g('a', '\'', '\u{1F600}', '∂', 'b')"), "g(' ', ' ', ' ', ' ', ' ')");
    }

    #[test]
    fn lifetimes_and_raw_identifiers_stay() {
        assert_eq!(code("fn f<'a>(x: &'a str, r#type: u8) {}"), "fn f<'a>(x: &'a str, r#type: u8) {}");
    }
}
