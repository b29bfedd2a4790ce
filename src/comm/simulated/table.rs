//! Machines: those with names, and how a user's file is read.
//!
//! A machine is a TOML file. Every number is required, names its unit, and must be sensible. The files in the folder `machines` say
//! where each number is from; a user's file begins as a copy.

use toml::{Table, Value};

use crate::{
    comm::{
        soft::{Adapter, AgentTimes, Block, Driven, Machine, Node, Picos, Processor, Shape},
        start::{settings::Settings, table::modelled},
    },
    error::Error,
};

const MACHINES: [(&str, &str); 8] = [
    ("infiniband", include_str!("machines/infiniband.toml")),
    ("gemini", include_str!("machines/gemini.toml")),
    ("extoll", include_str!("machines/extoll.toml")),
    ("bluegene", include_str!("machines/bluegene.toml")),
    ("loopback", include_str!("machines/loopback.toml")),
    ("ib", include_str!("machines/ib.toml")),
    ("gemini-ports", include_str!("machines/gemini.toml")),
    ("extoll-ports", include_str!("machines/extoll.toml")),
];

/// Machines of this ending have operations of the model between nodes, and no code of a network.
const PORTS: &str = "-ports";

/// The names of machines.
pub(in crate::comm) fn names() -> String {
    MACHINES.map(|(name, _)| name).join(", ")
}

/// The machine of a name, or of a file.
pub(super) fn machine(name: &str, settings: &Settings) -> Result<Machine, Error> {
    let refuse = |why: String| Error::Launch(format!("the network \"simulated:{name}\": {why}"));
    let known = MACHINES.iter().find(|(known, _)| *known == name);
    let text = match known {
        Some((_, text)) => (*text).to_owned(),
        None if name.is_empty() => return Err(refuse(format!("name a machine ({}) or a file", names()))),
        None => std::fs::read_to_string(name)
            .map_err(|error| refuse(format!("there is no such machine ({}), and no such file: {error}", names())))?,
    };
    let machine = read(&text, settings.ranks, settings.ranks_per_node).map_err(refuse)?;
    Ok(Machine { agent: machine.agent.filter(|_| !known.is_some_and(|(name, _)| name.ends_with(PORTS))), ..machine })
}

/// A part of a file; each field is taken once.
struct Part<'p> {
    path: &'p str,
    fields: Table,
}

impl Part<'_> {
    fn take(&mut self, name: &str) -> Result<Value, String> {
        self.fields.remove(name).ok_or_else(|| format!("[{}] has no {name}", self.path))
    }

    fn wrong(&self, name: &str, value: &Value, wanted: &str) -> String {
        format!("{name} of [{}] is {value}, and must be {wanted}", self.path)
    }

    /// A number that is at least `least`, and above it unless that is allowed.
    fn number(&mut self, name: &str, allows_zero: bool) -> Result<f64, String> {
        let value = self.take(name)?;
        let number = value.as_float().or_else(|| value.as_integer().map(|number| number as f64));
        // Larger ones are no machine's; sums of smaller ones are finite.
        let fits = |&number: &f64| (number > 0.0 || number == 0.0 && allows_zero) && number < 1e12;
        let wanted = if allows_zero { "a number, 0 or more" } else { "a number above 0" };
        number.filter(fits).ok_or_else(|| self.wrong(name, &value, wanted))
    }

    fn micros(&mut self, name: &str) -> Result<Picos, String> {
        self.number(name, true).map(Picos::of_micros)
    }

    /// Picoseconds for each byte.
    fn per_byte(&mut self, name: &str) -> Result<f64, String> {
        self.number(name, false).map(|gigabytes| 1000.0 / gigabytes)
    }

    fn count(&mut self, name: &str, least: usize) -> Result<usize, String> {
        let value = self.take(name)?;
        let count = value.as_integer().and_then(|count| usize::try_from(count).ok());
        count
            .filter(|count| (least..1 << 31).contains(count))
            .ok_or_else(|| self.wrong(name, &value, &format!("a whole number, at least {least}")))
    }

    fn switch(&mut self, name: &str) -> Result<bool, String> {
        let value = self.take(name)?;
        value.as_bool().ok_or_else(|| self.wrong(name, &value, "true or false"))
    }

    /// A part inside this one, which need not be there.
    fn inner<T>(
        &mut self,
        name: &str,
        path: &'static str,
        read: impl FnOnce(&mut Part<'_>) -> Result<T, String>,
    ) -> Result<Option<T>, String> {
        match self.fields.remove(name) {
            None => Ok(None),
            Some(Value::Table(fields)) => {
                let mut part = Part { path, fields };
                let inner = read(&mut part)?;
                part.end()?;
                Ok(Some(inner))
            }
            Some(value) => Err(self.wrong(name, &value, &format!("a part [{path}]"))),
        }
    }

    /// Nothing may be left.
    fn end(self) -> Result<(), String> {
        match self.fields.keys().next() {
            Some(name) => Err(format!("there is no {name} in [{}]", self.path)),
            None => Ok(()),
        }
    }
}

fn read(text: &str, ranks: usize, ranks_per_node: Option<usize>) -> Result<Machine, String> {
    let table: Table = text.parse().map_err(|error: toml::de::Error| error.to_string().trim().replace('\n', " "))?;
    let mut file = table;
    let mut part = |path: &'static str| match file.remove(path) {
        Some(Value::Table(fields)) => Ok(Part { path, fields }),
        _ => Err(format!("it has no part [{path}]")),
    };
    let mut of_processor = part("processor")?;
    let flops = 1e9 * of_processor.number("gigaflops", false)?;
    let memory = 1e9 * of_processor.number("memory_gb_per_s", false)?;
    of_processor.end()?;
    let mut of_node = part("node")?;
    let own = of_node.count("ranks", 1)?;
    let node = Node { latency: of_node.micros("latency_us")?, per_byte: of_node.per_byte("bandwidth_gb_per_s")? };
    of_node.end()?;
    let ranks_per_node = ranks_per_node.unwrap_or(own);
    let adapter = adapter(part("adapter")?)?;
    let mut network = part("network")?;
    let hop = network.micros("switch_us")?;
    let shape = shape(&mut network, ranks.div_ceil(ranks_per_node))?;
    let link = links(&mut network, &shape)?;
    network.end()?;
    let agent = match file.remove("agents") {
        None => None,
        Some(Value::Table(fields)) => Some(agent(Part { path: "agents", fields })?),
        Some(value) => return Err(format!("agents is {value}, and must be a part [agents]")),
    };
    if let Some(AgentTimes { code, .. }) = &agent {
        let modelled = modelled(code).map_err(|why| format!("code of [agents]: {why}"))?;
        if modelled.in_order && !adapter.ordered {
            return Err(format!("code of [agents] is \"{code}\", so ordered of [adapter] must be true"));
        }
        if adapter.driven.is_some() {
            return Err("there are [agents], so there can be no [adapter.processor]".into());
        }
    }
    if let Some(name) = file.keys().next() {
        return Err(format!("there is no part [{name}]"));
    }
    Ok(Machine { ranks_per_node, processor: Processor { flops, memory }, node, adapter, shape, link, hop, agent })
}

fn agent(mut part: Part<'_>) -> Result<AgentTimes, String> {
    let code = part.take("code")?;
    let times = AgentTimes {
        code: code.as_str().ok_or_else(|| part.wrong("code", &code, "the name of a network"))?.to_owned(),
        wake_up: part.micros("wake_up_us")?,
        prepare: part.micros("prepare_us")?,
        connect: part.micros("connect_us")?,
        handle_per_byte: part.per_byte("handle_gb_per_s")?,
    };
    part.end()?;
    Ok(times)
}

fn adapter(mut part: Part<'_>) -> Result<Adapter, String> {
    let block = part.inner("block", "adapter.block", |part| {
        let (from, startup) = (part.count("from_bytes", 1)?, part.micros("startup_us")?);
        Ok(Block { from, startup, per_byte: part.per_byte("bandwidth_gb_per_s")? })
    })?;
    let driven = part.inner("processor", "adapter.processor", |part| {
        Ok(Driven { receive: part.micros("receive_overhead_us")?, progress: part.micros("progress_delay_us")? })
    })?;
    let adapter = Adapter {
        overhead: part.micros("overhead_us")?,
        gap: part.micros("gap_us")?,
        per_byte: part.per_byte("bandwidth_gb_per_s")?,
        latency: part.micros("latency_us")?,
        read: part.micros("read_us")?,
        block,
        driven,
        copied: part.count("copied_bytes", 0)?,
        window: part.count("window", 1)?,
        ordered: part.switch("ordered")?,
        signals: part.switch("signals")?,
    };
    part.end()?;
    if adapter.driven.is_some() && (adapter.block.is_some() || adapter.gap > Picos::ZERO) {
        return Err(
            "processors move the messages ([adapter.processor]): there can be no [adapter.block], and gap_us must be 0".into()
        );
    }
    Ok(adapter)
}

/// Picoseconds for each byte. Those of a torus may differ by direction.
fn links(part: &mut Part<'_>, shape: &Shape) -> Result<[f64; 3], String> {
    const NAME: &str = "link_gb_per_s";
    let directions = match part.fields.get(NAME).and_then(Value::as_array) {
        Some(directions) if matches!(shape, Shape::Torus { .. }) => <[Value; 3]>::try_from(directions.clone()).ok(),
        _ => return part.per_byte(NAME).map(|link| [link; 3]),
    };
    let Some(directions) = directions else {
        let value = part.take(NAME)?;
        return Err(part.wrong(NAME, &value, "a number above 0, or three of them"));
    };
    let mut links = [0.0; 3];
    for (link, value) in links.iter_mut().zip(directions) {
        part.fields.insert(NAME.into(), value);
        *link = part.per_byte(NAME)?;
    }
    Ok(links)
}

fn shape(part: &mut Part<'_>, nodes: usize) -> Result<Shape, String> {
    const SHAPES: &str = "\"crossbar\", \"fat_tree\", \"torus\" or \"dragonfly\"";
    let name = part.take("topology")?;
    let shape = match name.as_str() {
        Some("crossbar") => Shape::Crossbar,
        Some("fat_tree") => Shape::FatTree { leaf: part.count("nodes_per_switch", 1)?, up: part.count("uplinks", 1)? },
        Some("torus") => {
            let share = part.count("nodes_per_switch", 1)?;
            match part.fields.remove("sides") {
                None => Shape::torus_of(nodes, share),
                Some(value) => {
                    let side = |value: &Value| {
                        value.as_integer().and_then(|side| usize::try_from(side).ok()).filter(|side| (1..1 << 20).contains(side))
                    };
                    let sides = value.as_array().and_then(|sides| sides.iter().map(side).collect::<Option<Vec<usize>>>());
                    let sides = sides
                        .and_then(|sides| sides.try_into().ok())
                        .ok_or_else(|| part.wrong("sides", &value, "three whole numbers above 0"))?;
                    Shape::Torus { sides, share }
                }
            }
        }
        Some("dragonfly") => {
            Shape::Dragonfly { routers: part.count("switches_per_group", 1)?, share: part.count("nodes_per_switch", 1)? }
        }
        _ => return Err(part.wrong("topology", &name, SHAPES)),
    };
    if !shape.is_small(nodes) {
        return Err("[network] has too many links for a model".into());
    }
    if shape.room() < nodes {
        return Err(format!("sides of [network] have room for {} nodes, and the job has {nodes}", shape.room()));
    }
    Ok(shape)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn machines_with_names_are_read() {
        for (name, text) in MACHINES {
            for ranks in [1, 2, 100, 8192, 65_536] {
                let machine = read(text, ranks, None).unwrap_or_else(|why| panic!("{name}: {why}"));
                assert!(machine.shape.room() >= ranks.div_ceil(machine.ranks_per_node), "{name}");
            }
            assert_eq!(read(text, 4, Some(1)).unwrap().ranks_per_node, 1);
        }
    }

    /// Each line is one that a user could have written.
    #[test]
    fn bad_files_give_one_clear_line() {
        let good = MACHINES[1].1;
        for (from, to, said) in [
            ("gap_us = 0.06", "gap_us = -1", "gap_us of [adapter] is -1, and must be a number, 0 or more"),
            ("gap_us = 0.06", "gap_us = \"much\"", "gap_us of [adapter] is \"much\""),
            ("gap_us = 0.06", "gap_us = nan", "gap_us of [adapter] is nan"),
            ("gap_us = 0.06", "", "[adapter] has no gap_us"),
            ("gap_us = 0.06", "gap_us = 0.06\nspeed = 3", "there is no speed in [adapter]"),
            ("[9.4, 4.7, 9.4]", "0", "link_gb_per_s of [network] is 0, and must be a number above 0"),
            ("[9.4, 4.7, 9.4]", "[9.4, 0, 9.4]", "link_gb_per_s of [network] is 0, and must be a number above 0"),
            ("[9.4, 4.7, 9.4]", "[9.4, 4.7]", "link_gb_per_s of [network] is [9.4, 4.7], and must be a number above 0, or three"),
            ("\"torus\"", "\"crossbar\"", "link_gb_per_s of [network] is [9.4, 4.7, 9.4], and must be a number above 0"),
            ("\"torus\"", "\"hypercube\"", "topology of [network] is \"hypercube\", and must be \"crossbar\", \"fat_tree\""),
            ("\"torus\"", "\"torus\"\nsides = [2, 2, 2]", "sides of [network] have room for 16 nodes, and the job has 100"),
            ("\"torus\"", "\"torus\"\nsides = [2, 2]", "sides of [network] is [2, 2], and must be three whole numbers"),
            ("[processor]", "[cpu]", "it has no part [processor]"),
            ("[network]", "[more]\n[network]", "there is no part [more]"),
            (
                "gap_us = 0.06",
                "gap_us = 0.06\nprocessor = 3",
                "processor of [adapter] is 3, and must be a part [adapter.processor]",
            ),
            (
                "[network]",
                "[adapter.processor]\nreceive_overhead_us = 1\n[network]",
                "[adapter.processor] has no progress_delay_us",
            ),
            (
                "[network]",
                "[adapter.processor]\nreceive_overhead_us = 1\nprogress_delay_us = 1\n[network]",
                "there can be no [adapter.block], and gap_us must be 0",
            ),
            ("ranks = 24", "ranks = 0", "ranks of [node] is 0, and must be a whole number, at least 1"),
            ("window = 64", "window = 64.5", "window of [adapter] is 64.5"),
            (
                "\"gemini\"",
                "\"pigeons\"",
                "code of [agents]: the network \"pigeons\" has no code for virtual time; choose \"ib\", \"gemini\", \"extoll\"",
            ),
            ("\"gemini\"", "\"ib\"", "code of [agents] is \"ib\", so ordered of [adapter] must be true"),
            ("\"gemini\"", "3", "code of [agents] is 3, and must be the name of a network"),
            ("[network]", "[network", "line"),
        ] {
            assert!(good.contains(from), "{from}");
            let words = read(&good.replacen(from, to, 1), 2400, None).unwrap_err();
            assert!(words.contains(said) && !words.contains('\n'), "{words}");
        }
    }
}
