//! Lines of all ranks, brought to rank 0.

use crate::{error::Result, job::Job};

/// Rank 0 holds about so many bytes at a time, and a rank sends at least and at most so many.
const HELD: usize = 16 << 20;
const LEAST: usize = 4 << 10;
const MOST: usize = 1 << 20;

/// A line has at most so many bytes.
pub(super) const LONGEST_LINE: usize = 4 << 10;

/// Rank 0 hands to `take` what the ranks send, whole lines, with the rank; lines of one rank in order. Collective.
///
/// # Errors
/// The end of the job.
pub(super) fn collect(job: &Job, lines: &str, mut take: impl FnMut(usize, &str) -> Result<()>) -> Result<()> {
    let most = (HELD / job.size()).clamp(LEAST, MOST);
    let pieces = pieces(lines, most);
    let turns = job.all_reduce_one(pieces.len() as u64, u64::max)?;
    for turn in 0..turns as usize {
        // A first word says how much of the rest is there.
        let mut sent = vec![0; 8 + most];
        if let Some(piece) = pieces.get(turn) {
            sent[..8].copy_from_slice(&(piece.len() as u64).to_le_bytes());
            sent[8..8 + piece.len()].copy_from_slice(piece.as_bytes());
        }
        let Some(all) = job.gather(0, &sent)? else { continue };
        for (rank, sent) in all.chunks_exact(8 + most).enumerate() {
            let (len, text) = sent.split_at(8);
            let len = u64::from_le_bytes(len.try_into().expect("eight bytes")) as usize;
            if len > 0 {
                take(rank, &String::from_utf8_lossy(&text[..len.min(most)]))?;
            }
        }
    }
    Ok(())
}

/// Cuts lines into pieces of whole lines, none longer than `most`.
fn pieces(lines: &str, most: usize) -> Vec<&str> {
    let mut pieces = Vec::new();
    let mut from = 0;
    let mut to = 0;
    for line in lines.split_inclusive('\n') {
        assert!(line.len() <= LONGEST_LINE, "a line of {} bytes", line.len());
        if to + line.len() - from > most {
            pieces.push(&lines[from..to]);
            from = to;
        }
        to += line.len();
    }
    if from < to {
        pieces.push(&lines[from..to]);
    }
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Launch;

    #[test]
    fn pieces_are_whole_lines() {
        assert_eq!(pieces("", 8), Vec::<&str>::new());
        assert_eq!(pieces("ab\ncd\nefgh\n", 6), ["ab\ncd\n", "efgh\n"]);
        assert_eq!(pieces("ab\ncd\nefgh\n", 5), ["ab\n", "cd\n", "efgh\n"]);
    }

    #[test]
    fn rank_0_gets_all_lines_of_all_ranks() {
        let body = |job: &Job| {
            let lines: String = (0..job.rank() * 1000).map(|line| format!("{} {line}\n", job.rank())).collect();
            let mut got = vec![String::new(); job.size()];
            collect(job, &lines, |rank, text| {
                got[rank] += text;
                Ok(())
            })?;
            for (rank, got) in got.iter().enumerate().filter(|_| job.rank() == 0) {
                let expected: String = (0..rank * 1000).map(|line| format!("{rank} {line}\n")).collect();
                assert_eq!(*got, expected);
            }
            job.sync()
        };
        Launch::new().ranks(3).network("threads").run(body).unwrap();
    }
}
