//! PMI-1, which Hydra and Slurm speak: lines of text, `cmd=put kvsname=... key=... value=...`, each answered by one.

use super::{
    key_values::{Idle, KeyValues, Refused, Result},
    line::Line,
    mapping::{self, MAPPING},
};

/// Longest value, whatever the launcher allows: some read a whole line, with its words, into 1024 bytes.
const LONGEST: usize = 512;

/// A process that has said to its launcher by PMI-1 that it is there.
#[derive(Debug)]
pub(super) struct Pmi1 {
    line: Line,
    /// Names the words of this job's processes.
    space: String,
    longest: usize,
}

/// The value behind `name=` in an answer, up to the next blank.
fn field<'a>(answer: &'a str, name: &str) -> Option<&'a str> {
    answer.split_whitespace().find_map(|word| word.strip_prefix(name)?.strip_prefix('='))
}

fn number(answer: &str, name: &str) -> Result<usize> {
    let value = field(answer, name).and_then(|value| value.parse().ok());
    value.ok_or_else(|| Refused::Said(format!("no {name} in {answer:?}")))
}

/// Checks that a launcher did what it was asked for.
fn succeeded(answer: &str) -> Result<()> {
    match field(answer, "rc") {
        None | Some("0") => Ok(()),
        Some(_) => Err(Refused::Said(answer.to_owned())),
    }
}

/// Asks for a version of the protocol. Returns true if the launcher speaks it.
pub(super) fn greet(line: &Line, version: usize, idle: Idle<'_>) -> Result<bool> {
    let subversion = usize::from(version == 1);
    let hello = format!("cmd=init pmi_version={version} pmi_subversion={subversion}\n");
    let answer = line.ask(&hello, "cmd=response_to_init", idle)?;
    Ok(succeeded(&answer).is_ok() && number(&answer, "pmi_version")? == version)
}

impl Pmi1 {
    /// The launcher speaks version 1.
    pub(super) fn start(line: Line, idle: Idle<'_>) -> Result<Self> {
        let most = line.ask("cmd=get_maxes\n", "cmd=maxes", &mut *idle)?;
        let longest = number(&most, "vallen_max")?;
        let named = line.ask("cmd=get_my_kvsname\n", "cmd=my_kvsname", idle)?;
        let space = field(&named, "kvsname").ok_or_else(|| Refused::Said(format!("no kvsname in {named:?}")))?.to_owned();
        // The zero that C puts behind a text counts.
        Ok(Pmi1 { line, space, longest: longest.saturating_sub(1).min(LONGEST) })
    }
}

impl KeyValues for Pmi1 {
    fn nodes(&mut self, ranks: usize, idle: Idle<'_>) -> Result<Option<Vec<u32>>> {
        mapping::answered(self.get(0, MAPPING, idle), ranks)
    }

    fn longest(&self) -> usize {
        self.longest
    }

    fn put(&mut self, key: &str, value: &str, idle: Idle<'_>) -> Result<()> {
        let line = format!("cmd=put kvsname={} key={key} value={value}\n", self.space);
        succeeded(&self.line.ask(&line, "cmd=put_result", idle)?)
    }

    fn fence(&mut self, idle: Idle<'_>) -> Result<()> {
        succeeded(&self.line.ask("cmd=barrier_in\n", "cmd=barrier_out", idle)?)
    }

    fn get(&mut self, _from: usize, key: &str, idle: Idle<'_>) -> Result<String> {
        let line = format!("cmd=get kvsname={} key={key}\n", self.space);
        let answer = self.line.ask(&line, "cmd=get_result", idle)?;
        succeeded(&answer)?;
        field(&answer, "value").map(str::to_owned).ok_or_else(|| Refused::Said(format!("no value in {answer:?}")))
    }

    fn finish(&mut self, idle: Idle<'_>) -> Result<()> {
        self.line.ask("cmd=finalize\n", "cmd=finalize_ack", idle)?;
        Ok(())
    }

    fn abort(&mut self, _why: &str) {
        // It does not answer; if it has gone, nothing is left to be ended.
        let _ = self.line.write(b"cmd=abort exitcode=1\n");
    }

    fn is_gone(&self) -> bool {
        self.line.is_gone()
    }

    fn last_words(&self) -> Option<(usize, String)> {
        self.line.last_words()
    }
}
