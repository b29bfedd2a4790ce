//! The text of a problem file, and what is wrong with it: one line that names the file, the line and the key.

use std::fmt::Display;
use std::ops::Range;
use std::path::Path;

use serde::de::DeserializeOwned;
use toml::Spanned;

/// A number with its place in the file.
pub(crate) type Number = Spanned<f64>;

/// A file that was read.
#[derive(Debug, Clone)]
pub(crate) struct Source {
    name: String,
    text: String,
}

impl Source {
    /// # Errors
    /// What the file system says.
    pub(crate) fn read(path: &Path) -> Result<Source, String> {
        let name = path.display().to_string();
        let text = std::fs::read_to_string(path).map_err(|error| format!("cannot read the problem {name}: {error}"))?;
        Ok(Source::new(name, text))
    }

    pub(crate) fn new(name: String, text: String) -> Source {
        Source { name, text }
    }

    /// The name without folders and ending.
    pub(crate) fn stem(&self) -> String {
        Path::new(&self.name).file_stem().map_or_else(|| self.name.clone(), |stem| stem.to_string_lossy().into_owned())
    }

    /// # Errors
    /// Text that is no TOML; a key that is unknown, missing or of another type.
    pub(crate) fn parse<T: DeserializeOwned>(&self) -> Result<T, String> {
        toml::from_str(&self.text).map_err(|error| {
            let message = error.message().trim().replace('\n', ", ");
            match error.span() {
                Some(span) => self.at(span.clone(), self.with_key(span, &message)),
                None => format!("{}: {message}", self.name),
            }
        })
    }

    /// What is wrong with the text at a place.
    pub(crate) fn at(&self, span: Range<usize>, what: impl Display) -> String {
        let line = 1 + self.before(span.start).matches('\n').count();
        format!("{}: line {line}: {what}", self.name)
    }

    /// What is wrong with the file as a whole.
    pub(crate) fn whole(&self, what: impl Display) -> String {
        format!("{}: {what}", self.name)
    }

    fn before(&self, place: usize) -> &str {
        self.text.get(..place).unwrap_or(&self.text)
    }

    /// The message behind the key whose value begins at a place, if the place is a value.
    fn with_key(&self, span: Range<usize>, message: &str) -> String {
        let line = self.before(span.start).rsplit('\n').next().unwrap_or_default();
        let given = self.text.get(span).unwrap_or_default().trim();
        let Some((before, "")) = line.rsplit_once('=').map(|(before, behind)| (before, behind.trim())) else {
            return message.to_owned();
        };
        match before.rsplit([',', '{']).next().map(str::trim) {
            Some(key) if !key.is_empty() && !given.contains('\n') => format!("{key} = {given}: {message}"),
            _ => message.to_owned(),
        }
    }

    /// # Errors
    /// A number that is infinite or none.
    pub(crate) fn finite(&self, key: &str, number: &Number) -> Result<f64, String> {
        self.check(key, number, "a finite number is needed", f64::is_finite)
    }

    /// # Errors
    /// A number that is not above zero.
    pub(crate) fn positive(&self, key: &str, number: &Number) -> Result<f64, String> {
        self.check(key, number, "a number above 0 is needed", |x| x > 0.0 && x.is_finite())
    }

    /// # Errors
    /// A number that `allowed` refuses.
    pub(crate) fn check(&self, key: &str, number: &Number, needed: &str, allowed: impl Fn(f64) -> bool) -> Result<f64, String> {
        let value = *number.get_ref();
        if allowed(value) { Ok(value) } else { Err(self.at(number.span(), format!("{key} = {value}: {needed}"))) }
    }
}
