//! The model: its parameters, and which figure each is fitted to.

use anyhow::{Context, Result, ensure};
use std::collections::BTreeMap;

/// What `benches/loggp` prints.
#[derive(Debug, Default)]
pub struct Figures(BTreeMap<String, f64>);

pub fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

impl Figures {
    pub fn read(lines: &str) -> Result<Self> {
        let read = |line: &str| {
            let (name, value) = line.split_once(',')?;
            Some((name.to_owned(), value.parse().ok()?))
        };
        let figures: BTreeMap<_, _> = lines.lines().filter_map(read).collect();
        ensure!(!figures.is_empty(), "no figures in:\n{lines}");
        Ok(Figures(figures))
    }

    /// Of several runs.
    pub fn medians(mut run: impl FnMut() -> Result<Figures>, times: usize) -> Result<Self> {
        let mut all: BTreeMap<String, Vec<f64>> = BTreeMap::new();
        for _ in 0..times {
            run()?.0.into_iter().for_each(|(name, value)| all.entry(name).or_default().push(value));
        }
        Ok(Figures(all.into_iter().map(|(name, values)| (name, median(values))).collect()))
    }

    pub fn of(&self, name: &str) -> Result<f64> {
        self.0.get(name).copied().with_context(|| format!("loggp has printed no {name}"))
    }

    pub fn iter(&self) -> impl Iterator<Item = (&str, f64)> {
        self.0.iter().map(|(name, &value)| (name.as_str(), value))
    }
}

/// A parameter of the model, and the figure that it is fitted to.
#[derive(Debug)]
pub struct Fit {
    pub parameter: &'static str,
    pub figure: &'static str,
    /// How the figure follows the parameter.
    pub follows: Follows,
}

#[derive(Clone, Copy, Debug)]
pub enum Follows {
    /// It has the parameter in it, in microseconds.
    Contains,
    /// It is proportional to it.
    Proportional,
    /// It is a rate, of so many kilobytes that take the parameter, in microseconds, and more.
    RateOf(f64),
}

/// In the order of [`Model`]'s parameters.
pub const FITS: &[Fit] = &[
    Fit { parameter: "overhead_us", figure: "stream", follows: Follows::Contains },
    Fit { parameter: "receive_overhead_us", figure: "both", follows: Follows::Contains },
    Fit { parameter: "latency_us", figure: "exchange", follows: Follows::Contains },
    Fit { parameter: "bandwidth_gb_per_s", figure: "swap", follows: Follows::Proportional },
    Fit { parameter: "progress_delay_us", figure: "busy_put", follows: Follows::RateOf(16.384) },
];

/// The values of the parameters, by [`FITS`].
#[derive(Debug)]
pub struct Model([f64; FITS.len()]);

impl Default for Model {
    /// Near what TCP inside a machine takes.
    fn default() -> Self {
        Model([8.0, 2.0, 0.5, 4.0, 100.0])
    }
}

impl Model {
    /// Changes each parameter by what is missing in its figure.
    pub fn correct(&mut self, measured: &Figures, modelled: &Figures) -> Result<()> {
        for (value, fit) in self.0.iter_mut().zip(FITS) {
            let [here, there] = [measured.of(fit.figure)?, modelled.of(fit.figure)?];
            *value = match fit.follows {
                Follows::Contains => *value + here - there,
                Follows::Proportional => *value * here / there,
                Follows::RateOf(kilobytes) => *value + kilobytes / here - kilobytes / there,
            };
            // No message is there before it was sent.
            *value = value.max(0.0);
        }
        Ok(())
    }

    /// The machine file.
    pub fn toml(&self) -> String {
        let [overhead, receive, latency, bandwidth, progress] = self.0;
        format!(
            "# Ranks of one machine that are nodes of their own, over MPICH and TCP inside the machine.
#
# Written by `cargo xtask calibrate`: the numbers of [adapter] and [adapter.processor] are fitted to benches/loggp on that machine.
# Computing is meant to be measured (GA_COMPUTING=measured); the numbers of [processor] are round ones.

[processor]
gigaflops = 10
memory_gb_per_s = 10

[node]
ranks = 1
latency_us = 1             # unused: no two ranks share a node
bandwidth_gb_per_s = 5     # copies in a rank's own memory

[adapter]
overhead_us = {overhead:.3}
gap_us = 0
bandwidth_gb_per_s = {bandwidth:.3}
latency_us = {latency:.3}
read_us = 0
copied_bytes = 4096        # the longest that waits for nobody
window = 1024
ordered = true
signals = true

[adapter.processor]
receive_overhead_us = {receive:.3}
progress_delay_us = {progress:.1}

[network]
topology = \"crossbar\"
switch_us = 0
link_gb_per_s = 1000
"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figures(values: [f64; 5]) -> Figures {
        Figures(FITS.iter().zip(values).map(|(fit, value)| (fit.figure.to_owned(), value)).collect())
    }

    #[test]
    fn parameters_are_corrected_until_the_figures_agree() {
        let truth = [5.0, 3.0, 0.2, 2.0, 150.0];
        // A machine with a little more in each figure.
        let run = |[overhead, receive, latency, bandwidth, progress]: [f64; 5]| {
            let both = overhead + receive;
            figures([overhead + 0.3, both + 0.1, both + latency, bandwidth * 0.5, 16.384 / (progress + 9.0)])
        };
        let measured = run(truth);
        let mut model = Model::default();
        for _ in 0..40 {
            let modelled = run(model.0);
            model.correct(&measured, &modelled).unwrap();
        }
        for (found, true_value) in model.0.iter().zip(truth) {
            assert!((found / true_value - 1.0).abs() < 0.01, "{:?}", model.0);
        }
    }

    #[test]
    fn figures_are_medians_of_lines() {
        let mut runs = ["a,1\nb,5", "a,3\nb,4", "a,2\nwarning\nb,6"].into_iter();
        let figures = Figures::medians(|| Figures::read(runs.next().unwrap()), 3).unwrap();
        assert_eq!((figures.of("a").unwrap(), figures.of("b").unwrap()), (2.0, 5.0));
        assert!(figures.of("c").is_err() && Figures::read("nothing").is_err());
    }
}
