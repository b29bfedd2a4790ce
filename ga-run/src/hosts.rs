//! Which host has which ranks.
//!
//! A line of a file of hosts is a name, and how many ranks the host takes: `node07`, `node07 slots=4` or `node07:4`. Ranks are dealt in
//! the order of lines, so a host that stands in several lines, as in the file of PBS, has ranks for each.

/// A host, and its ranks in ascending order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Host {
    /// `None` is this machine.
    pub(crate) name: Option<String>,
    pub(crate) ranks: Vec<usize>,
}

/// All ranks on this machine.
pub(crate) fn here(ranks: usize) -> Vec<Host> {
    vec![Host { name: None, ranks: (0..ranks).collect() }]
}

/// Deals ranks out to the hosts of a file, of which `own` are names of this machine.
pub(crate) fn deal(text: &str, ranks: usize, own: &[String]) -> Result<Vec<Host>, String> {
    let mut hosts: Vec<Host> = Vec::new();
    let (mut dealt, mut slots) = (0, 0);
    for (at, line) in text.lines().enumerate() {
        let line = line.split('#').next().unwrap_or_default().trim();
        if line.is_empty() {
            continue;
        }
        let (name, most) =
            host(line).ok_or_else(|| format!("line {}: {line:?} is no host, as node07 or node07 slots=4", at + 1))?;
        slots += most;
        let own_ranks = dealt..ranks.min(dealt + most);
        dealt = own_ranks.end;
        if own_ranks.is_empty() {
            continue;
        }
        let name = Some(name.to_owned()).filter(|name| !own.contains(name));
        match hosts.iter_mut().find(|host| host.name == name) {
            Some(host) => host.ranks.extend(own_ranks),
            None => hosts.push(Host { name, ranks: own_ranks.collect() }),
        }
    }
    match slots {
        0 => Err("it names no host".into()),
        _ if dealt < ranks => Err(format!("it has room for {slots} ranks, not for {ranks}; a host takes more by slots=K")),
        _ => Ok(hosts),
    }
}

/// A host and how many ranks it takes.
fn host(line: &str) -> Option<(&str, usize)> {
    let mut words = line.split_whitespace();
    let (first, second) = (words.next()?, words.next());
    let (name, slots) = match (first.rsplit_once(':'), second) {
        (_, Some(word)) => (first, word.strip_prefix("slots=")?),
        (Some((name, slots)), None) => (name, slots),
        (None, None) => (first, "1"),
    };
    let slots = slots.parse().ok().filter(|&slots| slots > 0)?;
    // An option would be the remote shell's.
    (!name.is_empty() && !name.starts_with('-') && words.next().is_none()).then_some((name, slots))
}

/// The names of this machine, which is called `node` by itself.
pub(crate) fn own_names(node: &str) -> Vec<String> {
    let short = node.split('.').next().unwrap_or_default();
    ["localhost", "127.0.0.1", node, short].map(str::to_owned).to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dealt(text: &str, ranks: usize) -> Result<Vec<Host>, String> {
        deal(text, ranks, &own_names("login.site"))
    }

    fn named(name: &str, ranks: &[usize]) -> Host {
        Host { name: Some(name.to_owned()), ranks: ranks.to_vec() }
    }

    #[test]
    fn ranks_are_dealt_in_blocks() {
        let text = "# nodes\nnode07 slots=2\n\n  node08:3 # more\nlogin\nnode09\n";
        let first = [named("node07", &[0, 1]), named("node08", &[2, 3, 4])];
        assert_eq!(dealt(text, 4).unwrap(), [first[0].clone(), named("node08", &[2, 3])]);
        let all = [&first[..], &[Host { name: None, ranks: vec![5] }, named("node09", &[6])]].concat();
        assert_eq!(dealt(text, 7).unwrap(), all);
        assert_eq!(dealt("a\nb\na\n", 3).unwrap(), [named("a", &[0, 2]), named("b", &[1])]);
    }

    #[test]
    fn what_is_wrong_with_a_file_is_said() {
        for (text, words) in [
            ("", "no host"),
            ("# node07\n", "no host"),
            ("a\nb:2\n", "room for 3 ranks, not for 4"),
            ("a\nb 2\n", "line 2"),
            ("a slots=0", "line 1"),
            ("a:x", "line 1"),
            (":3", "line 1"),
            ("-oProxyCommand=x", "line 1"),
            ("a slots=2 b", "line 1"),
        ] {
            let why = dealt(text, 4).unwrap_err();
            assert!(why.contains(words), "{text:?}: {why}");
        }
    }
}
