//! The node of each rank, as PMI launchers give it: `(vector,(0,2,4),(2,1,8))` stands for four ranks on each of nodes 0 and 1, then
//! eight on node 2, and again from the beginning if there are more.

use super::key_values::{Refused, Result};

/// The key of the mapping.
pub(super) const MAPPING: &str = "PMI_process_mapping";

/// The answer of a launcher that was asked for its mapping: none if it knows of none.
///
/// # Errors
/// The launcher has gone, or no rank waits for it any more.
pub(super) fn answered(words: Result<String>, ranks: usize) -> Result<Option<Vec<u32>>> {
    match words {
        Ok(words) => Ok(nodes(&words, ranks)),
        Err(Refused::Said(_)) => Ok(None),
        Err(refused) => Err(refused),
    }
}

/// The node of each rank, as words: a node, and the number of ranks that follow there.
pub(super) fn to_words(nodes: &[u32]) -> Vec<u64> {
    nodes.chunk_by(|one, other| one == other).map(|run| u64::from(run[0]) << 32 | run.len() as u64).collect()
}

/// The node of each rank, from words.
pub(super) fn of_words(words: &[u64]) -> Vec<u32> {
    words.iter().flat_map(|word| std::iter::repeat_n((word >> 32) as u32, *word as u32 as usize)).collect()
}

/// The node of each of `ranks` ranks. None if the words are not understood.
fn nodes(words: &str, ranks: usize) -> Option<Vec<u32>> {
    let blocks = words.trim().strip_prefix("(vector")?.strip_suffix(')')?;
    let numbers = blocks.split(['(', ')', ',']).filter(|word| !word.is_empty()).map(|word| word.trim().parse().ok());
    let numbers: Vec<u32> = numbers.collect::<Option<_>>()?;
    let (blocks, []) = numbers.as_chunks::<3>() else { return None };
    let turn = blocks.iter().flat_map(|&[first, nodes, each]| {
        (first..first.saturating_add(nodes)).flat_map(move |node| std::iter::repeat_n(node, each as usize))
    });
    // Without a single rank the list would never be full.
    turn.clone().next()?;
    Some(turn.cycle().take(ranks).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_of_launchers_are_understood() {
        assert_eq!(nodes("(vector,(0,1,3))", 3), Some(vec![0, 0, 0]));
        assert_eq!(nodes("(vector,(0,2,2),(2,1,3))", 7), Some(vec![0, 0, 1, 1, 2, 2, 2]));
        // Ranks that are dealt out one by one.
        assert_eq!(nodes("(vector,(0,3,1))", 7), Some(vec![0, 1, 2, 0, 1, 2, 0]));
        assert_eq!(of_words(&to_words(&[3, 3, 0, 3])), [3, 3, 0, 3]);
        for words in
            ["", "(vector)", "(vector,(0,1))", "(vector,(0,0,4))", "(vector,(0,2,0))", "(vector,(0,1,x))", "(list,(0,1,1))"]
        {
            assert_eq!(nodes(words, 2), None, "{words}");
        }
    }
}
