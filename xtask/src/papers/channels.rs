//! CkDirect: channels beside messages, for which mailboxes stand. Tables 1 and 2: there and back between two nodes. Figures 2 and 3: what a step of
//! a program gains, on more and more ranks.
//!
//! On Abe the protocols of this library run over modelled adapters. Of each machine a latency and a bandwidth were fitted to two rows of channels;
//! all else is predicted. Copies that a rank makes of messages take no time in the model, so long messages of mailboxes are a little too fast.
//! How much a program gains depends on how fast a rank is assumed to compute, so only the trend is judged.

use super::machine::{BLUE_GENE, abe};
use super::program::{Job, Programs};
use super::row::{Kind, Paper, Place, Row};
use super::transfers::{FITTED, at};
use anyhow::Result;

/// Bytes, and the published microseconds by CkDirect and by messages of Charm++.
type Published = (usize, f64, f64);

const ON_ABE: [Published; 6] = [
    (100, 12.383, 22.924),
    (1000, 16.108, 25.110),
    (5000, 29.330, 47.340),
    (20_000, 68.927, 96.215),
    (100_000, 275.322, 353.305),
    (500_000, 1294.358, 1399.145),
];
const ON_BLUE_GENE: [Published; 6] = [
    (100, 5.133, 14.467),
    (1000, 11.379, 20.822),
    (5000, 33.112, 44.822),
    (20_000, 115.103, 128.166),
    (100_000, 543.491, 560.634),
    (500_000, 2677.072, 2693.601),
];

const PREDICTED: f64 = 0.1;

const COPIES: &str = "Charm++ copies a message and the model copies none";

/// Of a step. Less is no more than before.
const GROWTH: f64 = 0.01;

pub fn table_1(programs: &Programs) -> Result<Vec<Row>> {
    let times = Times::measure(programs, 1, &abe(), &ON_ABE)?;
    let mut rows = times.by_channels([100, 500_000])?;
    // One row for those with one cause.
    let (short, long): (Vec<Published>, Vec<Published>) = ON_ABE.iter().partition(|(bytes, ..)| *bytes <= 5000);
    let published: Vec<String> = short.iter().map(|(bytes, put, sent)| format!("{bytes}: {:.2}", sent / put)).collect();
    let ours: Vec<f64> = short.iter().map(|&(bytes, ..)| times.ratio(bytes)).collect::<Result<_>>()?;
    let shown = ours.iter().map(|ratio| format!("{ratio:.2}")).collect::<Vec<_>>().join(", ");
    let holds = short.iter().zip(&ours).all(|((_, put, sent), ratio)| (ratio * put / sent - 1.0).abs() <= PREDICTED);
    let reason = "a letter and a short put of a channel are both records here; Charm++ makes and schedules a message for 5 µs";
    let row = Row::trend(times.place, "mailbox over channel", &published.join(", "), shown, "± 10 %", holds);
    rows.push(row.unless(reason));
    // The longest needs no reason.
    let (copied, longest) = long.split_at(2);
    rows.extend(times.by_mailbox(copied)?.into_iter().map(|row| row.unless(COPIES)).chain(times.by_mailbox(longest)?));
    Ok(rows)
}

pub fn table_2(programs: &Programs) -> Result<Vec<Row>> {
    let times = Times::measure(programs, 2, BLUE_GENE, &ON_BLUE_GENE)?;
    let short = "below 224 bytes DCMF has another path (section 2.2), which the model does not have";
    let fetched = "a message of more than two letters is fetched; Charm++ has no such protocol there";
    let [channels, letters] = [times.by_channels([1000, 500_000])?, times.by_mailbox(&ON_BLUE_GENE)?];
    // The shortest, and the shortest that is fetched.
    let reasoned = |rows: Vec<Row>, at: usize, reason| {
        rows.into_iter().enumerate().map(move |(number, row)| if number == at { row.unless(reason) } else { row })
    };
    Ok(reasoned(channels, 0, short).chain(reasoned(letters, 3, fetched)).collect())
}

/// The times of a table beside what it has.
struct Times {
    place: Place,
    published: &'static [Published],
    put: Vec<(usize, f64)>,
    sent: Vec<(usize, f64)>,
}

impl Times {
    fn measure(programs: &Programs, table: u32, network: &str, published: &'static [Published]) -> Result<Self> {
        let job = Job { network, ranks: 2, ranks_per_node: Some(1), skips: false, variables: &[] };
        let [put, sent] = ["channel", "mailbox"].map(|way| programs.benchmark(way, job));
        Ok(Times { place: Paper::CkDirect.at(table), published, put: put?, sent: sent? })
    }

    fn by_channels(&self, fitted: [usize; 2]) -> Result<Vec<Row>> {
        let row = |&(bytes, published, _): &Published| {
            let (kind, tolerance) = if fitted.contains(&bytes) { (Kind::Fitted, FITTED) } else { (Kind::Predicted, PREDICTED) };
            Ok(Row::near(self.place, &format!("channel, {bytes} B"), kind, "µs", published, at(&self.put, bytes)?, tolerance))
        };
        self.published.iter().map(row).collect()
    }

    fn by_mailbox(&self, published: &[Published]) -> Result<Vec<Row>> {
        let row = |&(bytes, _, published): &Published| {
            let (what, ours) = (format!("mailbox, {bytes} B"), at(&self.sent, bytes)?);
            Ok(Row::near(self.place, &what, Kind::Predicted, "µs", published, ours, PREDICTED))
        };
        published.iter().map(row).collect()
    }

    fn ratio(&self, bytes: usize) -> Result<f64> {
        Ok(at(&self.sent, bytes)? / at(&self.put, bytes)?)
    }
}

/// "Note in particular the ≈ 12 % savings in execution time over the message-based version on 256 processors."
pub fn stencil(programs: &Programs) -> Result<Vec<Row>> {
    let place = Paper::CkDirectFigures.at(2);
    let published = "more on more processors";
    let gains = [gains(programs, "stencil", &abe(), &[64, 256])?, gains(programs, "stencil", BLUE_GENE, &[64, 256, 1024])?];
    let rows = ["Abe", "Blue Gene/P"].into_iter().zip(gains);
    Ok(rows.map(|(machine, gains)| gains.row(place, &format!("stencil on {machine}, saved by channels"), published)).collect())
}

/// "On 4K processors of BG/P, the performance improvement is close to 40%."
pub fn multicast(programs: &Programs) -> Result<Vec<Row>> {
    let place = Paper::CkDirectFigures.at(3);
    let published = "more on more processors, 40 % at most";
    let [on_abe, on_blue_gene] = [(abe(), [27, 216]), (BLUE_GENE.to_owned(), [64, 512])]
        .map(|(network, ranks)| gains(programs, "multicast", &network, &ranks));
    let reason = "the adapters of Abe's nodes are busy all the time, and what is fetched comes at its receiver's pace";
    Ok(vec![
        on_abe?.row(place, "product on Abe, saved by channels", published).unless(reason),
        on_blue_gene?.row(place, "product on Blue Gene/P, saved by channels", published),
    ])
}

/// What channels save of a step, by the number of ranks.
struct Gains(Vec<(usize, f64)>);

fn gains(programs: &Programs, program: &str, network: &str, ranks: &[usize]) -> Result<Gains> {
    let micros = |way: &str, ranks: usize| -> Result<f64> {
        let job = Job { network, ranks, ranks_per_node: None, skips: false, variables: &[] };
        Ok(programs.benchmark(&format!("{program}_{way}"), job)?[0].1)
    };
    let gain = |&ranks: &usize| Ok((ranks, 1.0 - micros("channel", ranks)? / micros("mailbox", ranks)?));
    ranks.iter().map(gain).collect::<Result<_>>().map(Gains)
}

impl Gains {
    fn row(&self, place: Place, what: &str, published: &str) -> Row {
        let shown: Vec<String> = self.0.iter().map(|(ranks, gain)| format!("{ranks}: {:.1} %", 100.0 * gain)).collect();
        let (first, last) = (self.0[0].1, self.0[self.0.len() - 1].1);
        let holds = last > 0.0 && last > first + GROWTH;
        Row::trend(place, what, published, shown.join(", "), "above 0 at last, 1 % more than at first", holds)
    }
}
