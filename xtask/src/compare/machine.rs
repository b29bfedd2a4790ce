//! The machine that was measured: what a reader has to know of it, and a name for its files.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::thread;

/// A processor as its kernel describes it.
#[derive(Debug)]
pub struct Machine {
    /// Model, family and model number.
    model: String,
    cores: usize,
    /// Width of a vector register.
    vector_bits: Option<u32>,
    /// Sizes by level: `L1d 32K`, …
    caches: Vec<String>,
}

impl Machine {
    pub fn this() -> Self {
        let text = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let cores = thread::available_parallelism().map_or(1, |cores| cores.get());
        Self { model: model(&text), cores, vector_bits: vector_bits(&text), caches: caches() }
    }

    /// For the heading of its figures.
    pub fn title(&self) -> String {
        let mut title = format!("{}, {} cores", self.model, self.cores);
        if let Some(bits) = self.vector_bits {
            title.push_str(&format!(", {bits}-bit vectors"));
        }
        if !self.caches.is_empty() {
            title.push_str(&format!(", caches {}", self.caches.join(", ")));
        }
        title
    }

    /// The same for every run on such a processor; letters, digits and dashes.
    pub fn file_name(&self) -> String {
        let words = self.model.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
        format!("{}-{}-cores", words.map(str::to_lowercase).collect::<Vec<_>>().join("-"), self.cores)
    }
}

/// Year, month and day in UTC, by the system's `date`; empty where there is none.
pub fn today() -> String {
    let output = Command::new("date").args(["-u", "+%F"]).output();
    output.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned()).unwrap_or_default()
}

/// A virtual machine may hide the name of its processor; family and model number stay.
fn model(cpuinfo: &str) -> String {
    let name = value(cpuinfo, "model name").unwrap_or("unknown processor");
    match (value(cpuinfo, "cpu family"), value(cpuinfo, "model")) {
        (Some(family), Some(model)) => format!("{name} (family {family}, model {model})"),
        _ => name.to_owned(),
    }
}

fn vector_bits(cpuinfo: &str) -> Option<u32> {
    let flags: Vec<&str> = value(cpuinfo, "flags")?.split_whitespace().collect();
    [("avx512f", 512), ("avx2", 256), ("sse2", 128)].into_iter().find(|(flag, _)| flags.contains(flag)).map(|(_, bits)| bits)
}

/// What stands behind the first line of this name.
fn value<'a>(cpuinfo: &'a str, name: &str) -> Option<&'a str> {
    let fields = cpuinfo.lines().filter_map(|line| line.split_once(':'));
    fields.into_iter().find(|(key, _)| key.trim() == name).map(|(_, value)| value.trim())
}

/// Data and shared caches of the first processor.
fn caches() -> Vec<String> {
    let mut caches = Vec::new();
    for index in 0..8 {
        let folder = format!("/sys/devices/system/cpu/cpu0/cache/index{index}");
        let read = |file: &str| fs::read_to_string(Path::new(&folder).join(file)).map(|text| text.trim().to_owned());
        let (Ok(level), Ok(kind), Ok(size)) = (read("level"), read("type"), read("size")) else { continue };
        match kind.as_str() {
            "Data" => caches.push(format!("L{level}d {size}")),
            "Unified" => caches.push(format!("L{level} {size}")),
            _ => {}
        }
    }
    caches
}

#[cfg(test)]
mod tests {
    use super::*;

    const ZEN3: &str =
        "processor\t: 0\ncpu family\t: 25\nmodel\t\t: 1\nmodel name\t: AMD EPYC 7763\nflags\t\t: fpu sse2 avx avx2\n";

    #[test]
    fn a_processor_is_described_by_what_its_kernel_says() {
        assert_eq!(model(ZEN3), "AMD EPYC 7763 (family 25, model 1)");
        assert_eq!(vector_bits(ZEN3), Some(256));
        assert_eq!(vector_bits("flags : sse2 avx2 avx512f"), Some(512));
        assert_eq!((model(""), vector_bits("")), ("unknown processor".to_owned(), None));
    }

    #[test]
    fn names_of_files_are_plain() {
        let machine = Machine { model: model(ZEN3), cores: 2, vector_bits: Some(256), caches: vec!["L1d 32K".to_owned()] };
        assert_eq!(machine.file_name(), "amd-epyc-7763-family-25-model-1-2-cores");
        assert_eq!(machine.title(), "AMD EPYC 7763 (family 25, model 1), 2 cores, 256-bit vectors, caches L1d 32K");
    }
}
