//! A Rust file as a stream of tokens, so that words in comments and strings do not count.

use super::code::{self, Code};
use super::rust_files;
use anyhow::{Result, anyhow};
use proc_macro2::{Delimiter, TokenStream, TokenTree};
use std::fs;
use std::path::Path;
use std::str::FromStr;

/// What the rules look at.
#[derive(Debug)]
pub struct Source {
    /// Relative to the workspace.
    pub path: String,
    pub lines: usize,
    /// Lines of `unsafe` blocks, functions and impls; not of mere signatures.
    pub unsafe_lines: Vec<usize>,
    /// Lines and words of all paths: `a::{b::c, d}` are `a::b`, `a::b::c` and `a::d`.
    pub paths: Vec<(usize, Vec<String>)>,
    /// Lines and names of all words of the language and of the program.
    pub words: Vec<(usize, String)>,
    /// Lines and names of the types that the file defines outside of functions.
    pub types: Vec<(usize, String)>,
    pub code: Code,
}

/// Every Rust file below one folder.
pub fn read_all(root: &Path, folder: &str) -> Result<Vec<Source>> {
    let files = rust_files(root, folder)?;
    files.iter().map(|path| Source::parse(path, &fs::read_to_string(root.join(path))?)).collect()
}

impl Source {
    pub fn parse(path: &str, text: &str) -> Result<Self> {
        let tokens = TokenStream::from_str(text).map_err(|error| anyhow!("{path}: {error}"))?;
        let lines = text.lines().count();
        let code = code::of(tokens.clone());
        let (unsafe_lines, paths, words, types) = (Vec::new(), Vec::new(), Vec::new(), types(tokens.clone()));
        let mut source = Self { path: path.to_owned(), lines, unsafe_lines, paths, words, types, code };
        source.walk(tokens, &[]);
        Ok(source)
    }

    /// Lines and names of what is named as `parent::name`.
    pub fn members_of(&self, parent: &str) -> impl Iterator<Item = (usize, String)> {
        self.paths.iter().filter_map(move |(line, path)| match &path[..] {
            [.., before, name] if before == parent => Some((*line, name.clone())),
            _ => None,
        })
    }

    /// Each part of a list within braces continues the path `before` these.
    fn walk(&mut self, tokens: TokenStream, before: &[String]) {
        let tokens: Vec<TokenTree> = tokens.into_iter().collect();
        let mut path = before.to_vec();
        for (k, token) in tokens.iter().enumerate() {
            match token {
                TokenTree::Group(group) if group.delimiter() == Delimiter::Brace => {
                    self.walk(group.stream(), &std::mem::take(&mut path));
                }
                TokenTree::Group(group) => self.walk(group.stream(), &[]),
                TokenTree::Ident(ident) => {
                    let line = ident.span().start().line;
                    self.words.push((line, ident.to_string()));
                    if ident == "unsafe" && !is_signature(&tokens[k + 1..]) {
                        self.unsafe_lines.push(line);
                    }
                    path.push(ident.to_string());
                    if path.len() > 1 {
                        self.paths.push((line, path.clone()));
                    }
                    if !is_path_separator(&tokens[k + 1..]) {
                        path.clear();
                    }
                }
                TokenTree::Punct(punct) if punct.as_char() == ',' => path = before.to_vec(),
                TokenTree::Punct(punct) if punct.as_char() == ':' => {}
                _ => path.clear(),
            }
        }
    }
}

fn types(file: TokenStream) -> Vec<(usize, String)> {
    let tokens: Vec<TokenTree> = file.into_iter().collect();
    let type_of = |pair: &[TokenTree]| match pair {
        [TokenTree::Ident(word), TokenTree::Ident(name)]
            if ["struct", "enum", "union", "trait", "type"].contains(&word.to_string().as_str()) =>
        {
            Some((name.span().start().line, name.to_string()))
        }
        _ => None,
    };
    tokens.windows(2).filter_map(type_of).collect()
}

fn is_path_separator(tokens: &[TokenTree]) -> bool {
    let colon = |token: Option<&TokenTree>| matches!(token, Some(TokenTree::Punct(p)) if p.as_char() == ':');
    colon(tokens.first()) && colon(tokens.get(1))
}

/// After `unsafe`: a function's type, or a function without a body as a trait declares it.
fn is_signature(tokens: &[TokenTree]) -> bool {
    let Some(at) = tokens.iter().position(|token| matches!(token, TokenTree::Ident(ident) if ident == "fn")) else {
        return false;
    };
    let introduces = |token: &TokenTree| match token {
        TokenTree::Ident(ident) => ident == "extern",
        TokenTree::Literal(_) => true, // the ABI
        _ => false,
    };
    if !tokens[..at].iter().all(introduces) {
        return false;
    }
    if matches!(tokens.get(at + 1), Some(TokenTree::Group(_))) {
        return true;
    }
    let end = tokens[at..].iter().find(|token| match token {
        TokenTree::Group(group) => group.delimiter() == Delimiter::Brace,
        TokenTree::Punct(punct) => punct.as_char() == ';',
        _ => false,
    });
    matches!(end, Some(TokenTree::Punct(_)))
}
