//! PMI-2, which Slurm and Hydra speak: messages of `name=value;`, each behind its length in six characters.

use super::{
    key_values::{Idle, KeyValues, Refused, Result},
    line::Line,
    mapping::{self, MAPPING},
};

/// Longest value (PMI-2: `PMI2_MAX_VALLEN`), with the zero that C puts behind it.
const LONGEST: usize = 1024;

/// Longest message that is believed.
const LONGEST_MESSAGE: usize = 1 << 20;

/// A process that has said to its launcher by PMI-2 that it is there.
#[derive(Debug)]
pub(super) struct Pmi2 {
    line: Line,
    /// The job as the launcher names it.
    job: String,
}

/// The value behind `name=`. A semicolon in a value stands twice; no value here has one.
fn field<'a>(message: &'a str, name: &str) -> Option<&'a str> {
    message.split(';').find_map(|part| part.strip_prefix(name)?.strip_prefix('='))
}

fn ask(line: &Line, name: &str, arguments: &str, idle: Idle<'_>) -> Result<String> {
    let message = format!("cmd={name};{arguments}");
    line.write(format!("{:6}{message}", message.len()).as_bytes())?;
    let mut len = [0; 6];
    line.read(&mut len, &mut *idle)?;
    let len = std::str::from_utf8(&len).ok().and_then(|len| len.trim().parse().ok()).filter(|&len| len <= LONGEST_MESSAGE);
    let len: usize = len.ok_or_else(|| Refused::Said(format!("no length before the answer to {name}")))?;
    let mut answer = vec![0; len];
    line.read(&mut answer, idle)?;
    let answer = String::from_utf8_lossy(&answer).into_owned();
    let answers = field(&answer, "cmd").and_then(|cmd| cmd.strip_suffix("-response")) == Some(name);
    let succeeded = matches!(field(&answer, "rc"), None | Some("0"));
    if answers && succeeded { Ok(answer) } else { Err(Refused::Said(answer)) }
}

impl Pmi2 {
    /// The launcher speaks version 2, and names the job and this rank.
    pub(super) fn start(line: Line, job: &str, rank: usize, idle: Idle<'_>) -> Result<Self> {
        ask(&line, "fullinit", &format!("pmijobid={job};pmirank={rank};threaded=FALSE;"), idle)?;
        Ok(Pmi2 { line, job: job.to_owned() })
    }
}

impl KeyValues for Pmi2 {
    fn nodes(&mut self, ranks: usize, idle: Idle<'_>) -> Result<Option<Vec<u32>>> {
        let answer = ask(&self.line, "info-getjobattr", &format!("key={MAPPING};"), idle);
        mapping::answered(answer.map(|answer| field(&answer, "value").unwrap_or_default().to_owned()), ranks)
    }

    fn longest(&self) -> usize {
        LONGEST - 1
    }

    fn put(&mut self, key: &str, value: &str, idle: Idle<'_>) -> Result<()> {
        ask(&self.line, "kvs-put", &format!("key={key};value={value};"), idle).map(drop)
    }

    fn fence(&mut self, idle: Idle<'_>) -> Result<()> {
        ask(&self.line, "kvs-fence", "", idle).map(drop)
    }

    fn get(&mut self, from: usize, key: &str, idle: Idle<'_>) -> Result<String> {
        let answer = ask(&self.line, "kvs-get", &format!("jobid={};srcid={from};key={key};", self.job), idle)?;
        // Hydra's name of it, and Slurm's.
        let found = field(&answer, "flag").or_else(|| field(&answer, "found"));
        match (found, field(&answer, "value")) {
            (Some("TRUE"), Some(value)) => Ok(value.to_owned()),
            _ => Err(Refused::Said(answer)),
        }
    }

    fn finish(&mut self, idle: Idle<'_>) -> Result<()> {
        ask(&self.line, "finalize", "", idle).map(drop)
    }

    fn abort(&mut self, _why: &str) {
        let message = "cmd=abort;isworld=TRUE;msg=the ranks could not meet;";
        let _ = self.line.write(format!("{:6}{message}", message.len()).as_bytes());
    }

    fn is_gone(&self) -> bool {
        self.line.is_gone()
    }
}
