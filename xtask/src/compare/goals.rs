//! Every row of the comparison and what it is to reach, as data.
//!
//! A ratio is one of speeds, so that more than one is better for us whatever the unit.

use super::mpi::{Library, Place};
use super::source::Source;
use clap::ValueEnum;
use std::fmt;
use std::sync::LazyLock;

/// Rows that are measured together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
#[value(rename_all = "snake_case")]
pub enum Group {
    Element,
    Contiguous,
    Strided,
    Random,
    Inflight,
    Counter,
    /// From one rank to another: channels, two-sided messages.
    Message,
    /// Active messages and mailboxes.
    Active,
    Sync,
    /// Eight ranks, more than there are cores.
    Sync8,
    Whole,
    Transpose,
    Matmul,
    Lu,
    Create,
    Job,
    Ghosts,
    LennardJones,
    Sph,
    RandomAccess,
    Stencil,
    /// The program that multiplies in three dimensions, beside the library's product.
    #[value(name = "matmul_3d")]
    Matmul3d,
    Subsurface,
    PairCalculator,
    /// Patches, chunks, a counter and a target that computes, from node to node.
    Remote,
    /// Start of a job of four ranks.
    Start,
}

impl fmt::Display for Group {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let value = self.to_possible_value();
        f.write_str(value.as_ref().map_or("", |value| value.get_name()))
    }
}

/// A group in one place: what one start of a program measures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Section {
    pub place: Place,
    pub group: Group,
}

impl fmt::Display for Section {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.place, self.group)
    }
}

/// One condition on a row.
#[derive(Clone, Copy, Debug)]
pub enum Goal {
    /// At most this much, in the row's unit.
    AtMost(f64),
    /// At most this much above the time of `sync` on two ranks.
    BeyondSync(f64),
    /// At least this many times the C limit's speed.
    Limit(f64),
    /// At most this many times the C limit's time.
    LimitTime(f64),
    /// At least this many times the best peer's speed.
    BestPeer(f64),
    /// At least this many times one peer's speed.
    Peer(Source, f64),
    /// At most this many times one peer's time.
    PeerTime(Source, f64),
    /// At least this many times our own speed in the row of this shape.
    Over(&'static str, f64),
    /// Our gain over the row of this shape is at least this many times the limit's.
    OverAsLimit(&'static str, f64),
}

/// One line of the table.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    pub place: Place,
    pub group: Group,
    pub op: &'static str,
    pub shape: &'static str,
    pub unit: &'static str,
    pub goals: &'static [Goal],
}

const fn row(group: Group, op: &'static str, shape: &'static str, unit: &'static str, goals: &'static [Goal]) -> Row {
    Row { place: Place::Here, group, op, shape, unit, goals }
}

use Goal::{AtMost, BestPeer, BeyondSync, Limit, LimitTime, Over, OverAsLimit, Peer, PeerTime};
use Group::*;

const STRIDED_16: &[Goal] = &[Limit(1.5)];
const LARGE: &[Goal] = &[Limit(1.2), BestPeer(1.0)];

/// In the order of the table.
pub static ROWS: LazyLock<Vec<Row>> = LazyLock::new(|| HERE.iter().copied().chain(over_mpi(HERE)).collect());

/// Two ranks on one node where the shape says nothing else.
#[rustfmt::skip]
static HERE: &[Row] = &[
    // one f64 of a two-dimensional array at random subscripts in the other rank's block of this size
    row(Element, "load", "4MiB", "ns", &[AtMost(4.0)]),
    row(Element, "load", "64MiB", "ns", &[AtMost(6.0)]),
    row(Element, "store", "4MiB", "ns", &[AtMost(4.0)]),
    row(Element, "store", "64MiB", "ns", &[AtMost(6.0)]),
    // the same as a patch of one element
    row(Element, "get_small", "4MiB", "ns", &[AtMost(10.0)]),
    row(Element, "get_small", "64MiB", "ns", &[AtMost(15.0)]),
    row(Element, "put_small", "4MiB", "ns", &[AtMost(10.0)]),
    row(Element, "put_small", "64MiB", "ns", &[AtMost(15.0)]),

    row(Contiguous, "put", "4KiB", "GB/s", &[Limit(0.95)]),
    row(Contiguous, "put", "16KiB", "GB/s", &[Limit(0.95)]),
    row(Contiguous, "put", "64KiB", "GB/s", &[Limit(0.95)]),
    row(Contiguous, "put", "256KiB", "GB/s", &[Limit(0.95)]),
    row(Contiguous, "put", "1MiB", "GB/s", &[Limit(0.95)]),
    row(Contiguous, "put", "4MiB", "GB/s", &[]),
    row(Contiguous, "put", "16MiB", "GB/s", LARGE),
    row(Contiguous, "put", "64MiB", "GB/s", LARGE),
    row(Contiguous, "get", "4KiB", "GB/s", &[Limit(0.95)]),
    row(Contiguous, "get", "16KiB", "GB/s", &[Limit(0.95)]),
    row(Contiguous, "get", "64KiB", "GB/s", &[Limit(0.95)]),
    row(Contiguous, "get", "256KiB", "GB/s", &[Limit(0.95)]),
    row(Contiguous, "get", "1MiB", "GB/s", &[Limit(0.95)]),
    row(Contiguous, "get", "4MiB", "GB/s", &[]),
    row(Contiguous, "get", "16MiB", "GB/s", LARGE),
    row(Contiguous, "get", "64MiB", "GB/s", LARGE),
    row(Contiguous, "accumulate", "4KiB", "GB/s", &[Limit(0.95)]),
    row(Contiguous, "accumulate", "16KiB", "GB/s", &[Limit(0.95)]),
    row(Contiguous, "accumulate", "64KiB", "GB/s", &[Limit(0.95)]),
    row(Contiguous, "accumulate", "256KiB", "GB/s", &[Limit(0.95)]),
    row(Contiguous, "accumulate", "1MiB", "GB/s", &[Limit(0.95)]),
    row(Contiguous, "accumulate", "4MiB", "GB/s", &[Limit(0.95)]),
    row(Contiguous, "accumulate", "16MiB", "GB/s", &[Limit(0.95)]),
    row(Contiguous, "accumulate", "64MiB", "GB/s", &[Limit(0.95)]),

    // total / contiguous chunk; the second quarter of each row of a two-dimensional block
    row(Strided, "put_strided", "1MiB/16B", "GB/s", STRIDED_16),
    row(Strided, "put_strided", "1MiB/64B", "GB/s", &[Limit(1.0)]),
    row(Strided, "put_strided", "1MiB/256B", "GB/s", &[Limit(1.0)]),
    row(Strided, "put_strided", "1MiB/1024B", "GB/s", &[Limit(1.0)]),
    row(Strided, "put_strided", "16MiB/16B", "GB/s", STRIDED_16),
    row(Strided, "put_strided", "16MiB/64B", "GB/s", &[Limit(1.0)]),
    row(Strided, "put_strided", "16MiB/256B", "GB/s", &[Limit(1.0)]),
    row(Strided, "put_strided", "16MiB/1024B", "GB/s", &[Limit(1.0)]),
    row(Strided, "get_strided", "1MiB/16B", "GB/s", STRIDED_16),
    row(Strided, "get_strided", "1MiB/64B", "GB/s", &[Limit(1.0)]),
    row(Strided, "get_strided", "1MiB/256B", "GB/s", &[Limit(1.0)]),
    row(Strided, "get_strided", "1MiB/1024B", "GB/s", &[Limit(1.0)]),
    row(Strided, "get_strided", "16MiB/16B", "GB/s", STRIDED_16),
    row(Strided, "get_strided", "16MiB/64B", "GB/s", &[Limit(1.0)]),
    row(Strided, "get_strided", "16MiB/256B", "GB/s", &[Limit(1.0)]),
    row(Strided, "get_strided", "16MiB/1024B", "GB/s", &[Limit(1.0)]),
    row(Strided, "accumulate_strided", "1MiB/16B", "GB/s", &[Limit(0.85)]),
    row(Strided, "accumulate_strided", "1MiB/64B", "GB/s", &[Limit(0.85)]),
    row(Strided, "accumulate_strided", "1MiB/256B", "GB/s", &[Limit(0.85)]),
    row(Strided, "accumulate_strided", "1MiB/1024B", "GB/s", &[Limit(0.85)]),
    row(Strided, "accumulate_strided", "16MiB/16B", "GB/s", &[Limit(0.85)]),
    row(Strided, "accumulate_strided", "16MiB/64B", "GB/s", &[Limit(0.85)]),
    row(Strided, "accumulate_strided", "16MiB/256B", "GB/s", &[Limit(0.85)]),
    row(Strided, "accumulate_strided", "16MiB/1024B", "GB/s", &[Limit(0.85)]),

    // 10^5 random elements of a whole 4096 x 4096 array
    row(Random, "gather", "1e5", "M/s", &[Limit(0.9)]),
    row(Random, "scatter", "1e5", "M/s", &[Limit(0.9)]),
    row(Random, "scatter_accumulate", "1e5", "M/s", &[Limit(0.9)]),

    row(Inflight, "put_nb", "64x8B", "M/s", &[Peer(Source::OpenMpi, 2.0)]),

    row(Counter, "read_inc", "one rank", "ns", &[LimitTime(1.5)]),
    row(Counter, "read_inc", "two ranks", "ns", &[LimitTime(1.3)]),
    // one way, until the receiver has copied 100 bytes, or sees a longer message; and what there was before channels
    row(Message, "message", "100B", "ns", &[LimitTime(1.4), Peer(Source::OpenMpi, 1.67), Over("100B put_signal", 1.54)]),
    row(Message, "message", "100B put_signal", "ns", &[]),
    row(Message, "message", "1KiB", "ns", &[Peer(Source::OpenMpi, 1.0), Peer(Source::Mpich, 1.0), Over("1KiB put_signal", 1.0)]),
    row(Message, "message", "1KiB put_signal", "ns", &[]),
    row(Message, "message", "64KiB", "ns", &[Peer(Source::OpenMpi, 1.0), Peer(Source::Mpich, 1.0), Over("64KiB put_signal", 1.0)]),
    row(Message, "message", "64KiB put_signal", "ns", &[]),
    row(Message, "message", "500KiB", "ns", &[Peer(Source::OpenMpi, 1.0), Peer(Source::Mpich, 1.0), Over("500KiB put_signal", 1.0)]),
    row(Message, "message", "500KiB put_signal", "ns", &[]),
    // there and back, and one way a thousand times; a sync of an endpoint with nothing in flight
    row(Active, "call", "64B", "ns", &[LimitTime(1.4), Peer(Source::OpenMpi, 1.67)]),
    row(Active, "call", "sync", "ns", &[Over("job.sync", 0.2)]),
    row(Active, "call", "job.sync", "ns", &[]),
    row(Active, "flood", "8B", "ns", &[]),
    row(Active, "flood", "64B", "ns", &[AtMost(60.0)]),
    row(Active, "flood", "4KiB", "ns", &[AtMost(512.0)]),
    row(Active, "mailbox", "8B", "ns", &[Peer(Source::OpenMpi, 1.0)]),
    row(Active, "mailbox", "100B", "ns", &[Peer(Source::OpenMpi, 1.0)]),
    row(Active, "mailbox", "8KiB", "ns", &[Peer(Source::OpenMpi, 1.0)]),
    row(Active, "mailbox", "1MiB", "ns", &[Peer(Source::OpenMpi, 1.0)]),
    row(Sync, "sync", "2 ranks", "us", &[AtMost(0.1)]),
    // at most 1.3 times the time of one
    row(Sync, "epoch", "1 array", "us", &[]),
    row(Sync, "epoch", "4 arrays", "us", &[Over("1 array", 0.769)]),
    row(Sync, "scale", "10 times", "us", &[]),
    row(Sync, "scale", "10 times unsynced", "us", &[Over("10 times", 2.0)]),
    row(Sync8, "sync", "8 ranks", "us", &[AtMost(15.0)]),

    row(Whole, "fill", "4096^2", "GB/s", &[Limit(1.0)]),
    row(Whole, "scale", "4096^2", "GB/s", &[Limit(1.0)]),
    row(Whole, "copy", "4096^2", "GB/s", &[Limit(1.0)]),
    row(Whole, "add", "4096^2", "GB/s", &[Limit(1.0)]),
    row(Whole, "dot", "4096^2", "GB/s", &[Limit(1.0)]),
    row(Whole, "sum", "4096^2", "GB/s", &[Limit(0.95)]),
    row(Whole, "axpby", "4096^2", "GB/s", &[Limit(0.95)]),
    row(Whole, "zip_with", "4096^2", "GB/s", &[Limit(0.95)]),
    row(Whole, "zip_with2", "4096^2", "GB/s", &[Limit(0.95)]),
    row(Transpose, "transpose", "4096^2", "GB/s", &[Limit(0.7)]),
    row(Transpose, "copy_transposed", "4096^2", "GB/s", &[Limit(0.7)]),

    // the limit is OpenBLAS on two threads
    row(Matmul, "matmul", "256", "GFLOP/s", &[Limit(0.9)]),
    row(Matmul, "matmul", "1024", "GFLOP/s", &[Limit(1.0)]),
    row(Matmul, "matmul", "2048", "GFLOP/s", &[Limit(1.0)]),
    row(Matmul, "matvec", "8192", "GB/s", &[Limit(0.95)]),
    // the factorisation alone, as ScaLAPACK and OpenBLAS time it, and with the solves, as HPL does
    row(Lu, "lu_factor", "4096", "GFLOP/s", &[Peer(Source::ScaLapack, 1.4)]),
    row(Lu, "lu", "4096", "GFLOP/s", &[Peer(Source::Hpl, 1.0)]),

    row(Create, "create_destroy", "64^2", "us", &[BeyondSync(5.0)]),
    row(Create, "create_destroy", "4096^2", "us", &[BeyondSync(20.0)]),
    row(Job, "job", "2 ranks", "ms", &[AtMost(20.0)]),

    // one layer, around the whole array
    row(Ghosts, "update_ghosts", "64x64", "us", &[PeerTime(Source::GlobalArrays, 0.5)]),
    row(Ghosts, "update_ghosts", "160x160x160", "us", &[PeerTime(Source::GlobalArrays, 0.7)]),

    // whole programs: ours are the crate's examples. Two copies: of the program on one rank, at once, each on a core of its own, their speeds
    // added up: what the machine gives two cores that share nothing but its caches, memory and clock.
    row(LennardJones, "lennard_jones", "32000 1 rank", "steps/s", &[Peer(Source::Lammps, 1.0)]),
    row(LennardJones, "lennard_jones", "32000 2 ranks", "steps/s", &[Peer(Source::Lammps, 1.0), Over("32000 two copies", 0.97)]),
    row(LennardJones, "lennard_jones", "32000 two copies", "steps/s", &[]),
    // One and a half ranks do the work of two in 4/3 of the time; 15 % more are allowed: 0.75 / 1.15.
    row(LennardJones, "lennard_jones", "32000 one slow", "steps/s", &[Over("32000 2 ranks", 0.652)]),
    row(Sph, "sph", "1e5 1 rank", "M/s", &[]),
    row(Sph, "sph", "1e5 2 ranks", "M/s", &[Peer(Source::Lammps, 1.0), Peer(Source::PySph, 5.0), Over("1e5 two copies", 0.97)]),
    row(Sph, "sph", "1e5 two copies", "M/s", &[]),
    row(RandomAccess, "random_access", "2^24", "GUP/s", &[Peer(Source::Hpcc, 5.0)]),
    // the limit is memcpy of as many cells
    row(Stencil, "stencil", "256^3 1 rank", "Mcell/s", &[]),
    row(Stencil, "stencil", "256^3 2 ranks", "Mcell/s",
        &[Peer(Source::Mpi, 1.0), Limit(0.6), OverAsLimit("256^3 1 rank", 0.95)]),
    row(Matmul3d, "matmul_3d", "2048", "GFLOP/s", &[]),
    row(Subsurface, "subsurface", "theis 1 rank", "s", &[]),
    row(Subsurface, "subsurface", "theis", "s", &[Over("theis 1 rank", 1.6)]),
    row(Subsurface, "subsurface", "infiltration", "s", &[]),
    row(PairCalculator, "pair_calculator", "128 x 16", "ms", &[]),
];

/// Groups of the bench that are measured once more inside a node under `mpirun`.
pub const INSIDE: &[Group] =
    &[Element, Contiguous, Strided, Random, Inflight, Counter, Message, Sync, Sync8, Whole, Transpose, Matmul, Create, Ghosts];

const AS_SHARED: &[Goal] = &[Peer(Source::SharedMemory, 0.95)];
const NONE: &[Goal] = &[];
/// An operation that waits for its target takes 98 ms.
const UNATTENDED: &[Goal] = &[AtMost(10_000.0)];

const fn goals(library: Library) -> &'static [Goal] {
    match library {
        Library::Mpich => &[Peer(Source::GlobalArrays, 1.0), Peer(Source::Mpich, 0.9)],
        Library::OpenMpi => &[Peer(Source::GlobalArrays, 1.0), Peer(Source::OpenMpi, 0.9)],
    }
}

/// A put with a signal beside a bare message one way; a call beside bare messages there and back.
const fn message(library: Library) -> &'static [Goal] {
    match library {
        Library::Mpich => &[Peer(Source::Mpich, 0.87)],
        Library::OpenMpi => &[Peer(Source::OpenMpi, 0.87)],
    }
}

/// Letters of a mailbox beside bare messages.
const fn letters(library: Library) -> &'static [Goal] {
    match library {
        Library::Mpich => &[Peer(Source::Mpich, 0.83)],
        Library::OpenMpi => &[Peer(Source::OpenMpi, 0.83)],
    }
}

/// Letters that share frames beside bare messages.
const fn flood(library: Library) -> &'static [Goal] {
    match library {
        Library::Mpich => &[Peer(Source::Mpich, 5.0)],
        Library::OpenMpi => &[Peer(Source::OpenMpi, 5.0)],
    }
}

const fn shortest_chunks(library: Library) -> &'static [Goal] {
    match library {
        Library::Mpich => &[Peer(Source::GlobalArrays, 2.0), Peer(Source::Mpich, 0.9)],
        Library::OpenMpi => &[Peer(Source::GlobalArrays, 2.0), Peer(Source::OpenMpi, 0.9)],
    }
}

/// The rows of `here` inside a node, and those between nodes, over each library.
fn over_mpi(here: &'static [Row]) -> impl Iterator<Item = Row> {
    Library::ALL.into_iter().flat_map(move |library| {
        let again = here.iter().filter(|row| INSIDE.contains(&row.group));
        again.map(move |row| Row { place: Place::Inside(library), goals: AS_SHARED, ..*row }).chain(between(library))
    })
}

fn between(library: Library) -> Vec<Row> {
    let row = |group, op, shape, unit, goals| Row { place: Place::Between(library), group, op, shape, unit, goals };
    let mut rows = Vec::new();
    for op in ["put", "put_flush", "get", "accumulate"] {
        for shape in ["8B", "4KiB", "1MiB"] {
            rows.push(row(Remote, op, shape, "us", goals(library)));
        }
    }
    for op in ["put_strided", "get_strided", "accumulate_strided"] {
        rows.push(row(Remote, op, "1MiB/16B", "us", shortest_chunks(library)));
        for shape in ["1MiB/64B", "1MiB/256B", "1MiB/1024B"] {
            rows.push(row(Remote, op, shape, "us", goals(library)));
        }
    }
    rows.push(row(Remote, "read_inc", "8B", "us", goals(library)));
    rows.push(row(Remote, "put_signal", "8B", "us", message(library)));
    rows.push(row(Remote, "message", "100B", "us", message(library)));
    for op in ["busy_get", "busy_put", "busy_accumulate", "busy_read_inc"] {
        rows.push(row(Remote, op, "8B", "us", UNATTENDED));
    }
    rows.push(row(Active, "call", "64B", "ns", message(library)));
    rows.push(row(Active, "flood", "8B", "ns", flood(library)));
    for shape in ["8B", "100B", "8KiB"] {
        rows.push(row(Active, "mailbox", shape, "ns", letters(library)));
    }
    rows.push(row(Active, "mailbox", "1MiB", "ns", NONE));
    rows.push(row(Lu, "lu_factor", "4096", "GFLOP/s", &[Peer(Source::ScaLapack, 0.95)]));
    rows.push(row(Lu, "lu", "4096", "GFLOP/s", NONE));
    // beyond a program that begins and ends MPI
    rows.push(row(Start, "start", "4 ranks", "ms", &[AtMost(20.0)]));
    rows
}

impl Row {
    /// Speed of `a` over speed of `b`.
    pub fn ratio(&self, a: f64, b: f64) -> f64 {
        if self.is_time() { b / a } else { a / b }
    }

    pub fn is_time(&self) -> bool {
        matches!(self.unit, "ns" | "us" | "ms" | "s")
    }

    pub fn section(&self) -> Section {
        Section { place: self.place, group: self.group }
    }

    /// The row of the same operation and another shape.
    pub fn sibling(&self, shape: &str) -> Option<&'static Row> {
        ROWS.iter().find(|row| row.section() == self.section() && row.op == self.op && row.shape == shape)
    }
}

impl Goal {
    /// The condition as a reader of the table sees it.
    pub fn text(&self, row: &Row) -> String {
        let unit = row.unit.replace("us", "µs");
        match *self {
            AtMost(most) => format!("≤ {most} {unit}"),
            BeyondSync(most) => format!("≤ {most} {unit} beyond a sync"),
            Limit(least) => format!("≥ {least} × limit"),
            LimitTime(most) => format!("≤ {most} × limit's time"),
            BestPeer(least) => format!("≥ {least} × best peer"),
            Peer(source, least) => format!("≥ {least} × {}", source.title()),
            PeerTime(source, most) => format!("≤ {most} × {}'s time", source.title()),
            Over(shape, least) => format!("≥ {least} × {shape}"),
            OverAsLimit(shape, least) => format!("gain over {shape} ≥ {least} × limit's"),
        }
    }
}

/// The sections in the order of the table.
pub fn sections() -> Vec<Section> {
    let mut sections: Vec<Section> = ROWS.iter().map(Row::section).collect();
    sections.dedup();
    sections
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn goals_name_rows_that_exist() {
        for row in ROWS.iter() {
            for goal in row.goals {
                if let Over(shape, _) | OverAsLimit(shape, _) = goal {
                    assert!(row.sibling(shape).is_some(), "{} {shape}", row.op);
                }
            }
        }
    }

    #[test]
    fn rows_have_distinct_names_and_every_group_has_one() {
        let names: BTreeSet<_> = ROWS.iter().map(|row| (row.section(), row.op, row.shape)).collect();
        assert_eq!(names.len(), ROWS.len());
        for group in Group::value_variants() {
            assert!(ROWS.iter().any(|row| row.group == *group), "{group}");
        }
    }

    #[test]
    fn a_section_is_measured_once() {
        let sections = sections();
        assert_eq!(sections.iter().collect::<BTreeSet<_>>().len(), sections.len());
        let names: BTreeSet<String> = sections.iter().map(Section::to_string).collect();
        assert_eq!(names.len(), sections.len());
    }
}
