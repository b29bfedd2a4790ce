//! What a checkpoint says of itself, and the checksums of its files.

use std::{
    fs::{self, File},
    io,
    path::Path,
};

use crc32fast::{Hasher, hash};
use toml::{Table, Value};

use crate::file::{placed::Placed, visit::Failure};

/// Bytes of elements with one checksum.
const PIECE: usize = 4 << 20;
/// Names in the folder of a checkpoint, and of it.
pub(super) const TEXT: &str = "checkpoint";
pub(super) const VALUES: &str = "values";
pub(super) const FOLDER: &str = "checkpoint-";

/// What the text of a checkpoint says.
#[derive(Debug, Default)]
pub(super) struct Manifest {
    /// Checksums of the header and of each piece.
    pub(super) arrays: Vec<(String, Vec<u32>)>,
    /// From which byte to which, and the checksum.
    pub(super) values: Vec<(String, [u64; 3])>,
}

impl Manifest {
    pub(super) fn parse(text: &str) -> Result<Manifest, Failure> {
        let table: Table = text.parse().map_err(|_| Failure::Format("is no checkpoint".into()))?;
        Self::of(&table).ok_or_else(|| Failure::Format("is no checkpoint of this version".into()))
    }

    fn of(table: &Table) -> Option<Manifest> {
        let entries = |key: &str| table.get(key).map_or(Some(&[][..]), |entries| entries.as_array().map(Vec::as_slice));
        let number = |value: &Value| value.as_integer().and_then(|value| u64::try_from(value).ok());
        let name = |entry: &Value| Some(entry.get("name")?.as_str()?.to_owned());
        let mut manifest = Manifest::default();
        for entry in entries("array")? {
            let checks = entry.get("checks")?.as_array()?.iter().map(|check| u32::try_from(number(check)?).ok());
            manifest.arrays.push((name(entry)?, checks.collect::<Option<_>>()?));
        }
        let mut end = 0_u64;
        for entry in entries("value")? {
            let begin = end;
            end = end.checked_add(number(entry.get("bytes")?)?)?;
            manifest.values.push((name(entry)?, [begin, end, number(entry.get("check")?)?]));
        }
        (table.get("version")?.as_integer() == Some(1)).then_some(manifest)
    }

    pub(super) fn check_values(&self, values: &[u8]) -> Result<(), String> {
        let len = self.values.last().map_or(0, |(_, [_, end, _])| *end);
        if len != values.len() as u64 {
            return Err(format!("has {} bytes, not {len}", values.len()));
        }
        let wrong = |[begin, end, check]: [u64; 3]| u64::from(hash(&values[begin as usize..end as usize])) != check;
        match self.values.iter().find(|(_, value)| wrong(*value)) {
            Some((name, _)) => Err(format!("does not have the value \"{name}\" as it was saved")),
            None => Ok(()),
        }
    }
}

/// Checksums of the pieces of a stream of bytes.
pub(super) struct Checks {
    piece: usize,
    current: Hasher,
    len: usize,
    done: Vec<u32>,
}

impl Checks {
    pub(super) fn new(placed: &Placed) -> Checks {
        Checks { piece: grain(placed) * placed.kind.size(), current: Hasher::new(), len: 0, done: Vec::new() }
    }

    pub(super) fn add(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let (some, rest) = bytes.split_at(bytes.len().min(self.piece - self.len));
            self.current.update(some);
            self.len += some.len();
            bytes = rest;
            if self.len == self.piece {
                self.done.push(std::mem::take(&mut self.current).finalize());
                self.len = 0;
            }
        }
    }

    pub(super) fn end(mut self) -> Vec<u32> {
        if self.len > 0 {
            self.done.push(self.current.finalize());
        }
        self.done
    }
}

/// Elements of a piece.
pub(super) fn grain(placed: &Placed) -> usize {
    (PIECE / placed.kind.size().max(1)).max(1)
}

/// The checksum of what stands before the elements of a file.
pub(super) fn head(file: &Path, begin: u64) -> io::Result<u32> {
    let mut bytes = vec![0; begin as usize];
    io::Read::read_exact(&mut File::open(file)?, &mut bytes)?;
    Ok(hash(&bytes))
}

/// Numbers of the checkpoints in a folder, if there is one.
pub(super) fn numbers(folder: &Path) -> io::Result<Vec<u64>> {
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    // As this module writes them.
    let own = |name: &str| name.strip_prefix(FOLDER)?.parse().ok().filter(|number: &u64| format!("{FOLDER}{number}") == name);
    let number = |entry: io::Result<fs::DirEntry>| Ok(entry?.file_name().to_str().and_then(own));
    entries.map(number).filter_map(io::Result::transpose).collect()
}

/// The text of a checkpoint, which is as it was saved.
pub(super) fn checked_text(folder: &Path) -> Result<String, Failure> {
    let file = folder.join(TEXT);
    let text = fs::read(&file).map_err(|error| io::Error::other(format!("{}: {error}", file.display())))?;
    let text = String::from_utf8(text).map_err(|_| damaged(&file, "is no text"))?;
    let end = text.rfind("[end]\ncheck = ").ok_or_else(|| damaged(&file, "has no end"))?;
    if text[end..] != format!("[end]\ncheck = {}\n", hash(&text.as_bytes()[..end])) {
        return Err(damaged(&file, "is not as it was saved"));
    }
    Ok(text)
}

pub(super) fn damaged(file: &Path, what: &str) -> Failure {
    Failure::Format(format!(
        "has {}, which {what}; remove its folder to restore the checkpoint before it, if there is one",
        file.display()
    ))
}

pub(super) fn find<'m, R>(entries: &'m [(String, R)], name: &str, what: &str) -> Result<&'m R, Failure> {
    let names = || entries.iter().map(|(name, _)| format!("\"{name}\"")).collect::<Vec<_>>().join(", ");
    let found = entries.iter().find(|(entry, _)| entry == name).map(|(_, found)| found);
    found.ok_or_else(|| Failure::Format(format!("has no {what} \"{name}\"; it has {}", names())))
}
