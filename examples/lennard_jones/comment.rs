//! The second line of a frame of extended XYZ: `key=value` pairs.
//!
//! Keys and values are bare words, or strings in quotes, in which a backslash takes the next character as it is and `\n` is a new line. A value may
//! also be a list: of words in braces, or with commas in brackets, which stand in each other for a matrix. Words without `=` say nothing. What is not
//! closed is a bare word. A value that blanks and another pair follow is empty.
//!
//! # Source
//! libAtoms, *Extended XYZ specification*, github.com/libAtoms/extxyz. Single quotes are those of the Atomic Simulation Environment.

use std::str::CharIndices;

/// The pairs of a line.
#[derive(Debug, PartialEq)]
pub(crate) struct Comment(Vec<(String, String)>);

impl Comment {
    pub(crate) fn parse(line: &str) -> Self {
        let mut pairs = Vec::new();
        let mut rest = line.trim_start();
        while !rest.is_empty() {
            let (key, behind) = string(rest, "=");
            rest = behind.trim_start();
            if let Some(behind) = rest.strip_prefix('=') {
                let next = behind.trim_start();
                let is_empty = next.len() < behind.len() && string(next, "=").1.trim_start().starts_with('=');
                let (value, behind) = if is_empty { (String::new(), next) } else { string(next, "") };
                pairs.push((key, value));
                rest = behind.trim_start();
            }
        }
        Comment(pairs)
    }

    /// The value of a key, without what encloses it. Numbers of a list have blanks between them.
    pub(crate) fn value(&self, key: &str) -> Option<&str> {
        self.0.iter().find(|pair| pair.0 == key).map(|pair| &pair.1[..])
    }
}

/// What `text` begins with, and the text behind it: a quoted string, a list, or all up to a blank or one of `ends`.
fn string<'a>(text: &'a str, ends: &str) -> (String, &'a str) {
    enclosed(text).unwrap_or_else(|| bare(text, ends))
}

/// A quoted string or a list, if `text` begins with one that is closed.
fn enclosed(text: &str) -> Option<(String, &str)> {
    let mut string = String::new();
    // What will close the quotes and brackets around the next character, the innermost last.
    let mut closers = Vec::new();
    let mut before = ' ';
    let mut characters = text.char_indices();
    while let Some((at, c)) = characters.next() {
        let innermost = closers.last().copied();
        // Inside a word such a character is one like others.
        let may_open = !matches!(innermost, Some('"' | '\'')) && (before.is_whitespace() || "[{,".contains(before));
        match c {
            '\\' if innermost.is_some() => string.extend(escaped(&mut characters)),
            _ if innermost == Some(c) => {
                closers.pop();
                if closers.is_empty() {
                    return Some((string, &text[at + c.len_utf8()..]));
                }
                string.push(' ');
            }
            '"' | '\'' if may_open => closers.push(c),
            '{' if may_open => closers.push('}'),
            '[' if may_open => closers.push(']'),
            ',' if innermost == Some(']') => string.push(' '),
            // The next pair: what has begun is not closed.
            '=' if innermost == Some(']') => return None,
            _ if innermost.is_none() => return None,
            _ => string.push(c),
        }
        before = c;
    }
    None
}

/// A word up to a blank or one of `ends`.
fn bare<'a>(text: &'a str, ends: &str) -> (String, &'a str) {
    let mut word = String::new();
    let mut characters = text.char_indices();
    while let Some((at, c)) = characters.next() {
        match c {
            '\\' => word.extend(escaped(&mut characters)),
            _ if c.is_whitespace() || ends.contains(c) => return (word, &text[at..]),
            _ => word.push(c),
        }
    }
    (word, "")
}

/// What a backslash before the next character means.
fn escaped(characters: &mut CharIndices<'_>) -> Option<char> {
    characters.next().map(|(_, c)| if c == 'n' { '\n' } else { c })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(line: &str, key: &str) -> Option<String> {
        Comment::parse(line).value(key).map(str::to_owned)
    }

    #[test]
    fn words_inside_a_value_are_no_keys() {
        for (value, text) in [
            (r#""Lattice=1 pbc=F""#, "Lattice=1 pbc=F"),
            (r#""a \"quoted\" pbc=F \\""#, r#"a "quoted" pbc=F \"#),
            (r#""it's pbc=F""#, "it's pbc=F"),
            (r#"'say "pbc=F"'"#, r#"say "pbc=F""#),
            (r#"'it\'s pbc=F'"#, "it's pbc=F"),
            (r#""two\nlines \pbc=F""#, "two\nlines pbc=F"),
            ("{Lattice=1 pbc=F}", "Lattice=1 pbc=F"),
            (r#"{"} pbc=F" b}"#, "} pbc=F  b"),
            (r#""{[ pbc=F""#, "{[ pbc=F"),
            (r#"["a, pbc=F", 'b']"#, "a, pbc=F   b "),
            ("it's", "it's"),
            (r"a\ b\=c", "a b=c"),
            ("a-b{[", "a-b{["),
            ("[O'Brien,x]", "O'Brien x"),
            ("[a[b, c]", "a[b  c"),
            ("", ""),
        ] {
            let comment = Comment::parse(&format!("comment = {value}\tpbc=T"));
            assert_eq!(comment.value("comment"), Some(text), "{value}");
            assert_eq!(comment.value("pbc"), Some("T"), "{value}");
        }
    }

    #[test]
    fn lists_and_matrices_are_words() {
        for list in ["\"1 2 3\"", "'1 2 3'", "{1 2 3}", "[1,2,3]", "[ 1, 2 , 3 ]", "[[1, 2], [3]]"] {
            let words: Vec<String> =
                value(&format!("a={list} b=1"), "a").unwrap().split_whitespace().map(str::to_owned).collect();
            assert_eq!(words, ["1", "2", "3"], "{list}");
        }
    }

    #[test]
    fn keys_may_be_quoted_and_words_may_stand_alone() {
        let line = "made by hand  'a key' = 1 \"b\\\"=\"=2 xLattice=3 Lattice=4 =5 end";
        for (key, expected) in [("a key", "1"), ("b\"=", "2"), ("Lattice", "4"), ("", "5")] {
            assert_eq!(value(line, key).as_deref(), Some(expected), "{key}");
        }
        assert_eq!((value(line, "made"), value(line, "end"), value("", "a")), (None, None, None));
        assert_eq!(value("a=\\", "a").as_deref(), Some(""));
    }

    #[test]
    fn a_value_may_be_empty() {
        for line in [
            "note= pbc=\"F F F\"",
            "note =  pbc = 'F F F'",
            "note= 'pbc'={F F F}",
            "note=\"\" pbc=[F, F, F]",
            "pbc=\"F F F\" note= ",
        ] {
            assert_eq!(value(line, "note").as_deref(), Some(""), "{line}");
            assert_eq!(value(line, "pbc").unwrap().split_whitespace().collect::<Vec<_>>(), ["F"; 3], "{line}");
        }
        // Without blanks between it is a word.
        assert_eq!(value("note=a=b pbc=T", "note").as_deref(), Some("a=b"));
    }

    #[test]
    fn what_is_not_closed_is_a_word() {
        for (line, expected) in [
            ("a=\"1 2 b=3", "\"1"),
            ("a='1 2\\'", "'1"),
            ("a={1 2", "{1"),
            ("a=[[1 2]", "[[1"),
            ("a=[0,1) pbc=\"F F F\" c=[1]", "[0,1)"),
            ("a=[0,1)", "[0,1)"),
            ("\"a=1 a=2", "2"),
        ] {
            assert_eq!(value(line, "a").as_deref(), Some(expected), "{line}");
        }
        assert_eq!(value("range=[0,1) pbc=\"F F F\" c=[1]", "pbc").as_deref(), Some("F F F"));
        assert_eq!(value("\"a=1", "\"a").as_deref(), Some("1"));
    }
}
