//! The second line of a frame of extended XYZ: `key=value` pairs.
//!
//! Keys and values are bare words, or strings in quotes, in which a backslash takes the next character as it is and `\n` is a new line. A value may
//! also be a list: of words in braces, or with commas in brackets, which stand in each other for a matrix. Words without `=` say nothing.
//!
//! # Source
//! libAtoms, *Extended XYZ specification*, github.com/libAtoms/extxyz. Single quotes are those of the Atomic Simulation Environment.

/// The pairs of a line.
#[derive(Debug, PartialEq)]
pub(crate) struct Comment(Vec<(String, String)>);

impl Comment {
    /// # Errors
    /// A quote or a bracket that nothing closes.
    pub(crate) fn parse(line: &str) -> Result<Self, String> {
        let mut pairs = Vec::new();
        let mut rest = line.trim_start();
        while !rest.is_empty() {
            let (key, behind) = string(rest, "=")?;
            rest = behind.trim_start();
            if let Some(behind) = rest.strip_prefix('=') {
                let (value, behind) = string(behind.trim_start(), "")?;
                pairs.push((key, value));
                rest = behind.trim_start();
            }
        }
        Ok(Comment(pairs))
    }

    /// The value of a key, without what encloses it. Numbers of a list have blanks between them.
    pub(crate) fn value(&self, key: &str) -> Option<&str> {
        self.0.iter().find(|pair| pair.0 == key).map(|pair| &pair.1[..])
    }
}

/// What `text` begins with, and the text behind it: a quoted string, a list, or all up to a blank or one of `ends`.
fn string<'a>(text: &'a str, ends: &str) -> Result<(String, &'a str), String> {
    let mut string = String::new();
    // What will close the quotes and brackets around the next character, the innermost last.
    let mut closers = Vec::new();
    let mut characters = text.char_indices();
    while let Some((at, c)) = characters.next() {
        let innermost = closers.last().copied();
        // Inside a bare word such a character is one like others.
        let may_open = !matches!(innermost, Some('"' | '\'')) && (at == 0 || innermost.is_some());
        match c {
            '\\' => string.extend(characters.next().map(|(_, c)| if c == 'n' { '\n' } else { c })),
            _ if innermost == Some(c) => {
                closers.pop();
                if closers.is_empty() {
                    return Ok((string, &text[at + c.len_utf8()..]));
                }
                string.push(' ');
            }
            '"' | '\'' if may_open => closers.push(c),
            '{' if may_open => closers.push('}'),
            '[' if may_open => closers.push(']'),
            ',' if innermost == Some(']') => string.push(' '),
            _ if innermost.is_none() && (c.is_whitespace() || ends.contains(c)) => return Ok((string, &text[at..])),
            _ => string.push(c),
        }
    }
    match closers.last() {
        None => Ok((string, "")),
        Some(closer) => Err(format!("`{closer}` is missing behind `{}`", text.chars().take(40).collect::<String>())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(line: &str, key: &str) -> Option<String> {
        Comment::parse(line).unwrap().value(key).map(str::to_owned)
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
            ("a=b{[", "a=b{["),
            ("", "pbc=T"),
        ] {
            let comment = Comment::parse(&format!("comment = {value}\tpbc=T")).unwrap();
            assert_eq!(comment.value("comment"), Some(text), "{value}");
            assert_eq!(comment.value("pbc"), (!value.is_empty()).then_some("T"), "{value}");
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
    fn what_is_not_closed_is_told() {
        for (line, closer) in [("a=\"1 2 b=3", "\""), ("a='1 2\\'", "'"), ("a={1 2", "}"), ("a=[[1 2]", "]"), ("\"a=1", "\"")] {
            let problem = Comment::parse(line).unwrap_err();
            assert!(problem.starts_with(&format!("`{closer}` is missing behind `")), "{problem}");
        }
    }
}
