//! What goes wrong in a simulated machine, at given times: `die:3@0.5`, `stall:2@0.1+0.05`, `delay:0.01*20`. `Machine::faults` explains
//! them.

use super::Picos;

/// The faults of a simulated machine.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Faults {
    /// Ranks, and the times of their deaths.
    pub(in crate::comm) deaths: Vec<(usize, Picos)>,
    /// Nodes, and the times from and until which their adapters stall.
    pub(in crate::comm) stalls: Vec<(usize, Picos, Picos)>,
    /// The part of all messages that is late, and the most by which one is.
    pub(in crate::comm) delay: Option<(f64, Picos)>,
}

impl Faults {
    /// What a fault must be.
    pub(crate) const ALLOWED: &str =
        "faults such as die:RANK@SECONDS, stall:NODE@SECONDS+SECONDS or delay:PART*MICROSECONDS, with commas between";

    pub(crate) fn of_text(text: &str) -> Option<Self> {
        let mut faults = Faults::default();
        for fault in text.split(',') {
            let (kind, what) = fault.trim().split_once(':')?;
            match kind {
                "die" => {
                    let (rank, at) = what.split_once('@')?;
                    faults.deaths.push((rank.parse().ok()?, seconds(at)?));
                }
                "stall" => {
                    let (node, when) = what.split_once('@')?;
                    let (at, long) = when.split_once('+')?;
                    let at = seconds(at)?;
                    faults.stalls.push((node.parse().ok()?, at, at + seconds(long)?));
                }
                "delay" if faults.delay.is_none() => {
                    let (part, most) = what.split_once('*')?;
                    let part = part.parse().ok().filter(|part| (0.0..=1.0).contains(part))?;
                    faults.delay = Some((part, Picos::of_seconds(1e-6 * number(most)?)));
                }
                _ => return None,
            }
        }
        Some(faults)
    }
}

/// Not negative, and not more than a month.
fn number(text: &str) -> Option<f64> {
    text.parse().ok().filter(|number| (0.0..=2.7e6).contains(number))
}

fn seconds(text: &str) -> Option<Picos> {
    number(text).map(Picos::of_seconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_are_read_or_refused() {
        let seconds = Picos::of_seconds;
        let faults = Faults::of_text("die:3@0.5, stall:2@0.1+0.05,delay:0.01*20,die:0@1").unwrap();
        assert_eq!(faults.deaths, [(3, seconds(0.5)), (0, seconds(1.0))]);
        assert_eq!(faults.stalls, [(2, seconds(0.1), seconds(0.1) + seconds(0.05))]);
        assert_eq!(faults.delay, Some((0.01, Picos::of_micros(20.0))));
        for wrong in [
            "",
            "die",
            "die:1",
            "die:-1@2",
            "die:1@-2",
            "stall:1@2",
            "delay:2*1",
            "delay:0.1*1,delay:0.1*1",
            "burn:1@2",
            "die:1@nan",
        ] {
            assert_eq!(Faults::of_text(wrong), None, "{wrong}");
        }
    }
}
