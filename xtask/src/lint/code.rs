//! What of a file is code of the crate: no comments, no blank lines, nothing that is built for tests or benches only.

use proc_macro2::{Delimiter, Group, Span, TokenStream, TokenTree};
use std::collections::BTreeSet;

#[derive(Debug, Default, PartialEq, Eq)]
pub struct Code {
    /// The lines.
    pub lines: BTreeSet<usize>,
    /// The modules in files of their own that are built for tests or benches only.
    pub test_modules: Vec<String>,
}

/// The code in the tokens of a file.
pub fn of(file: TokenStream) -> Code {
    let (mut lines, mut test_modules) = (BTreeSet::new(), Vec::new());
    walk(&file.into_iter().collect::<Vec<_>>(), &mut lines, &mut test_modules);
    Code { lines, test_modules }
}

fn walk(tokens: &[TokenTree], lines: &mut BTreeSet<usize>, test_modules: &mut Vec<String>) {
    let mut at = 0;
    while let Some(token) = tokens.get(at) {
        if let Some(attribute) = attribute(&tokens[at..]) {
            if attribute.is_doc_comment {
                at += attribute.len;
                continue;
            }
            if is_for_tests_or_benches(&attribute.group) {
                if attribute.is_inner {
                    return;
                }
                let end = end_of_item(tokens, at + attribute.len);
                test_modules.extend(module_in_a_file(&tokens[at..end]));
                at = end;
                continue;
            }
        }
        match token {
            TokenTree::Group(group) => {
                lines.extend([group.span_open().start().line, group.span_close().end().line]);
                walk(&group.stream().into_iter().collect::<Vec<_>>(), lines, test_modules);
            }
            _ => lines.extend(token.span().start().line..=token.span().end().line),
        }
        at += 1;
    }
}

struct Attribute {
    group: Group,
    /// Of so many tokens.
    len: usize,
    is_inner: bool,
    /// The tokens that a comment becomes all lie where it does.
    is_doc_comment: bool,
}

/// The attribute at the beginning of some tokens.
fn attribute(tokens: &[TokenTree]) -> Option<Attribute> {
    let is_inner = is_punct(tokens.get(1), '!');
    let len = 2 + usize::from(is_inner);
    match tokens.get(len - 1) {
        Some(TokenTree::Group(group)) if is_punct(tokens.first(), '#') && group.delimiter() == Delimiter::Bracket => {
            let place = |span: Span| (span.start(), span.end());
            let is_doc_comment = place(tokens[0].span()) == place(group.span());
            Some(Attribute { group: group.clone(), len, is_inner, is_doc_comment })
        }
        _ => None,
    }
}

/// `cfg(test)`, or `cfg(all(..))` with `test` among the conditions.
fn is_for_tests_or_benches(attribute: &Group) -> bool {
    fn requires_test(conditions: TokenStream, within: &str) -> bool {
        let tokens: Vec<TokenTree> = conditions.into_iter().collect();
        tokens.iter().enumerate().any(|(k, token)| match (token, tokens.get(k + 1)) {
            (TokenTree::Ident(ident), Some(TokenTree::Group(group))) => ident == within && requires_test(group.stream(), "all"),
            (TokenTree::Ident(ident), _) => within == "all" && ident == "test",
            (TokenTree::Literal(feature), _) => within == "all" && feature.to_string() == "\"_bench\"",
            _ => false,
        })
    }
    requires_test(attribute.stream(), "cfg")
}

/// The name of `mod name;`.
fn module_in_a_file(item: &[TokenTree]) -> Option<String> {
    let [.., TokenTree::Ident(word), TokenTree::Ident(name), end] = item else { return None };
    (word == "mod" && is_punct(Some(end), ';')).then(|| name.to_string())
}

/// Where an item ends that begins at `at`, with more of its attributes or not: behind its braces, its semicolon or its comma.
fn end_of_item(tokens: &[TokenTree], mut at: usize) -> usize {
    while let Some(attribute) = attribute(&tokens[at..]) {
        at += attribute.len;
    }
    let word = |at: usize| {
        tokens.get(at).and_then(|token| if let TokenTree::Ident(word) = token { Some(word.to_string()) } else { None })
    };
    let is_prefix = |at: usize| match word(at).as_deref() {
        Some("pub" | "unsafe" | "async" | "extern" | "default") => true,
        Some("const") => matches!(word(at + 1).as_deref(), Some("fn" | "unsafe" | "async" | "extern")),
        _ => false,
    };
    while is_prefix(at) {
        at += 1;
        // `pub(crate)`, `extern "C"`.
        let is_parenthesis = |group: &Group| group.delimiter() == Delimiter::Parenthesis;
        if matches!(tokens.get(at), Some(TokenTree::Literal(_)))
            || matches!(tokens.get(at), Some(TokenTree::Group(g)) if is_parenthesis(g))
        {
            at += 1;
        }
    }
    let (braces, commas) = match word(at).as_deref() {
        Some("use" | "static" | "const" | "type" | "let" | "crate") => (false, false),
        Some("fn" | "mod" | "struct" | "enum" | "union" | "impl" | "trait" | "macro_rules") => (true, false),
        _ => (true, true),
    };
    let mut angles = 0;
    for (k, token) in tokens.iter().enumerate().skip(at) {
        match token {
            TokenTree::Punct(punct) => match punct.as_char() {
                ';' => return k + 1,
                ',' if commas && angles == 0 => return k + 1,
                '<' => angles += 1,
                // Not of an arrow.
                '>' if !is_punct(tokens.get(k.wrapping_sub(1)), '-') && !is_punct(tokens.get(k.wrapping_sub(1)), '=') => {
                    angles -= 1
                }
                _ => {}
            },
            TokenTree::Group(group) if braces && group.delimiter() == Delimiter::Brace => return k + 1,
            _ => {}
        }
    }
    tokens.len()
}

fn is_punct(token: Option<&TokenTree>, char: char) -> bool {
    matches!(token, Some(TokenTree::Punct(punct)) if punct.as_char() == char)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str) -> usize {
        of(text.parse().expect("Rust")).lines.len()
    }

    #[test]
    fn comments_and_blank_lines_are_no_code() {
        assert_eq!(lines("//! Essay.\n\n/// What.\nfn f() {\n    // why\n\n    g(); // here\n}\n"), 3);
        assert_eq!(lines("/* a\nb */ fn f() {}\n/* /* nested\n*/\n*/\n/** What.\n\nWhen. */\nfn g() {}\n"), 2);
        assert_eq!(lines("#![deny(missing_docs)]\n#[doc(alias = \"b\")]\n#[doc = \"b\"]\nfn a() {}\n"), 4);
    }

    #[test]
    fn strings_are_code_whatever_is_in_them() {
        assert_eq!(lines("const A: &str = \"http://b /*\";\nconst C: char = '\"';\n// */\nconst D: u8 = 1;\n"), 3);
        assert_eq!(lines("const A: &str = r#\"\n// \"not\" a comment\n/*\"#;\n"), 3);
        assert_eq!(lines("fn f<'a>(x: &'a str) -> char {\n    '/' // '\n}\n"), 3);
    }

    #[test]
    fn what_is_for_tests_or_benches_only_is_not_counted() {
        for item in [
            "#[cfg(test)]\nmod tests {\n    use super::*;\n    fn f() {}\n}",
            "#[cfg(all(test, not(loom)))]\nmod tests {\n}",
            "#[cfg(test)]\n#[derive(Debug)]\npub(crate) struct S<const N: usize> {\n    a: u8,\n}",
            "#[cfg(test)]\nstruct S(\n    u8,\n);",
            "#[cfg(test)]\npub(super) unsafe fn f(a: u8) -> Vec<u8>\nwhere\n    u8: Copy,\n{\n}",
            "#[cfg(test)]\nconst A: S = S {\n    a: 1\n};",
            "#[cfg(test)]\nconst fn f() {\n}",
            "#[cfg(test)]\nuse a::{\n    b,\n};",
            "#[cfg(test)]\npub(crate) mod other;",
        ] {
            assert_eq!(lines(&format!("fn before() {{}}\n{item}\nfn after() {{}}\n")), 2, "{item}");
        }
        assert_eq!(lines("#![cfg(test)]\nfn f() {}\n"), 0);
        // Within items.
        assert_eq!(lines("struct S {\n    #[cfg(test)]\n    a: Map<u8, u8>,\n    b: u8,\n}\n"), 3);
        assert_eq!(lines("fn f() {\n    match x {\n        #[cfg(test)]\n        A(..) => 1,\n        _ => 2,\n    }\n}\n"), 5);
        assert_eq!(lines("impl S {\n    #[cfg(test)]\n    fn f() {\n    }\n    fn g() {}\n}\n"), 3);
    }

    #[test]
    fn what_may_be_built_otherwise_is_counted() {
        assert_eq!(lines("#[cfg(any(feature = \"mpi\", test))]\nfn f() {}\n#[cfg(not(test))]\nfn g() {}\n"), 4);
        assert_eq!(lines("#[cfg_attr(test, allow(dead_code))]\nfn f() {}\n#[cfg(all(unix, not(test)))]\nfn test() {}\n"), 4);
    }

    #[test]
    fn modules_for_tests_are_named() {
        let code = of("mod a;\n#[cfg(test)]\npub(crate) mod b;\n#[cfg(test)]\nmod c {}\n#[cfg(feature = \"_bench\")]\nmod d;\n"
            .parse()
            .expect("Rust"));
        assert_eq!(code, Code { lines: [1].into(), test_modules: vec!["b".to_owned(), "d".to_owned()] });
    }
}
