//! What a rank's thread does, and when: its calls, the waits in them, and the computing that the program declares.
//!
//! A rank records while its job prints statistics or writes a trace. Otherwise a call reads one flag of its thread. Only the thread of
//! the rank's body is recorded. Calls inside calls belong to the outer one, except those of the program in an epoch. Accesses to elements
//! of mapped memory have no record. Time belongs to the innermost phase.

use std::{borrow::Cow, cell::Cell, collections::BTreeMap, panic::Location, time::Duration};

/// What fills a slice of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum What {
    Call,
    Wait,
    Work,
    Phase,
}

/// A slice of a rank's time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Slice {
    pub(crate) what: What,
    pub(crate) name: Cow<'static, str>,
    /// The line of the program that made the call.
    pub(crate) line: Option<&'static Location<'static>>,
    pub(crate) begin: Duration,
    pub(crate) end: Duration,
}

/// All calls of one name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Sum {
    pub(crate) calls: u64,
    pub(crate) time: Duration,
    /// Of that, time in waits, and in declared computing.
    pub(crate) waited: Duration,
    pub(crate) worked: Duration,
    /// Bytes that were read from files or written to them.
    pub(crate) in_files: u64,
}

impl Sum {
    fn add(&mut self, other: Sum) {
        self.calls += other.calls;
        self.time += other.time;
        self.waited += other.waited;
        self.worked += other.worked;
        self.in_files += other.in_files;
    }
}

/// See the module's essay.
pub(crate) struct Recorder {
    /// The job whose calls are recorded: of several on one thread, the first.
    job: usize,
    clock: Box<dyn Fn() -> Duration>,
    began: Duration,
    slices: Vec<Slice>,
    /// How many slices are kept, and how many were not.
    most: usize,
    lost: u64,
    /// What the program does, by its name for it, and since when it has been in that phase.
    phases: BTreeMap<&'static str, Sums>,
    phase: &'static str,
    since: Duration,
    /// How many calls the thread is in, and the outermost.
    depth: usize,
    open: Option<Open>,
    /// Calls that wait for the program's code to return.
    outer: Vec<(usize, Option<Open>)>,
}

/// What was done in a phase.
#[derive(Default)]
struct Sums {
    time: Duration,
    /// By the address of its name.
    calls: BTreeMap<usize, (&'static str, Sum)>,
    /// Waits outside of calls.
    waits: BTreeMap<String, Sum>,
}

#[derive(Clone, Copy)]
struct Open {
    name: &'static str,
    line: &'static Location<'static>,
    begin: Duration,
    sum: Sum,
}

/// What a rank has done when its record ends.
#[derive(Debug, Default)]
pub(crate) struct Record {
    pub(crate) began: Duration,
    pub(crate) ended: Duration,
    pub(crate) slices: Vec<Slice>,
    pub(crate) lost: u64,
    /// By the name of the phase, which is empty outside of phases: its time, and its calls by name.
    pub(crate) phases: BTreeMap<&'static str, (Duration, BTreeMap<String, Sum>)>,
}

thread_local! {
    /// Whether this thread records.
    static RECORDS: Cell<bool> = const { Cell::new(false) };
    static RECORDER: Cell<Option<Box<Recorder>>> = const { Cell::new(None) };
}

#[inline(always)]
fn records() -> bool {
    RECORDS.get()
}

/// Nothing if the thread does not record.
fn with<R>(run: impl FnOnce(&mut Recorder) -> R) -> Option<R> {
    /// Puts it back, also if `run` panics.
    struct Taken(Option<Box<Recorder>>);
    impl Drop for Taken {
        fn drop(&mut self) {
            RECORDER.set(self.0.take());
        }
    }
    let mut taken = Taken(Some(RECORDER.take()?));
    taken.0.as_deref_mut().map(run)
}

/// Does something to the recorder when it is dropped, also while the program's code unwinds.
struct Later<F: FnMut(&mut Recorder)>(F);

impl<F: FnMut(&mut Recorder)> Drop for Later<F> {
    fn drop(&mut self) {
        with(&mut self.0);
    }
}

/// The calling thread records the calls of a job from now on, and keeps `most` slices. Returns false if it already records another one.
pub(crate) fn start(job: usize, clock: Box<dyn Fn() -> Duration>, most: usize) -> bool {
    if RECORDS.get() {
        return false;
    }
    let began = clock();
    RECORDER.set(Some(Box::new(Recorder {
        job,
        clock,
        began,
        slices: Vec::new(),
        most,
        lost: 0,
        phases: BTreeMap::new(),
        phase: "",
        since: began,
        depth: 0,
        open: None,
        outer: Vec::new(),
    })));
    RECORDS.set(true);
    true
}

/// What the thread has recorded of a job, if it has; it records no more.
pub(crate) fn stop(job: usize) -> Option<Record> {
    // A job in a thread-local may be dropped behind it.
    let recorder = RECORDER.try_with(Cell::take).ok()??;
    if recorder.job != job {
        RECORDER.set(Some(recorder));
        return None;
    }
    RECORDS.set(false);
    let mut recorder = recorder;
    let ended = recorder.change_phase("");
    let phases = recorder.phases.into_iter().map(|(phase, sums)| {
        let mut calls = sums.waits;
        for (name, sum) in sums.calls.into_values() {
            calls.entry(method(name)).or_default().add(sum);
        }
        (phase, (sums.time, calls))
    });
    let phases = phases.collect();
    let slices = recorder.slices.into_iter().map(|slice| match slice.what {
        What::Call => Slice { name: method(&slice.name).into(), ..slice },
        _ => slice,
    });
    Some(Record { began: recorder.began, ended, slices: slices.collect(), lost: recorder.lost, phases })
}

/// Sets aside what the thread records, for [`give_back`]: another rank may run in it.
pub(super) fn set_aside() -> Option<Box<Recorder>> {
    RECORDS.set(false);
    RECORDER.take()
}

pub(super) fn give_back(recorder: Option<Box<Recorder>>) {
    RECORDS.set(recorder.is_some());
    RECORDER.set(recorder);
}

/// The thread is in a call until this is dropped.
#[must_use]
pub(crate) struct InCall(());

impl InCall {
    /// `name` is that of the call, or of the type of a closure in it.
    #[inline(always)]
    pub(super) fn new(name: &'static str, line: &'static Location<'static>) -> Self {
        if records() {
            with(|recorder| recorder.enter(name, line));
        }
        InCall(())
    }
}

impl Drop for InCall {
    #[inline(always)]
    fn drop(&mut self) {
        if records() {
            with(Recorder::leave);
        }
    }
}

/// The thread is in a call, which [`located`](super::located) does not see, until the answer is dropped.
#[inline]
#[track_caller]
pub(crate) fn call(name: &'static str) -> InCall {
    InCall::new(name, Location::caller())
}

/// Runs code of the program inside a call: its calls are calls of their own.
pub(crate) fn program<R>(body: impl FnOnce() -> R) -> R {
    if !records() {
        return body();
    }
    with(Recorder::pause);
    let _later = Later(Recorder::resume);
    body()
}

/// Runs a phase of the program.
pub(crate) fn phase<R>(name: &'static str, body: impl FnOnce() -> R) -> R {
    let outer = if records() { with(|recorder| (recorder.phase, recorder.change_phase(name))) } else { None };
    let _later = outer.map(|(outer, begin)| {
        Later(move |recorder: &mut Recorder| {
            let end = recorder.change_phase(outer);
            recorder.keep(Slice { what: What::Phase, name: name.into(), line: None, begin, end });
        })
    });
    body()
}

/// Runs a handler of the program inside a call: a phase of its own, by its name.
#[inline]
pub(crate) fn handler<R>(name: &'static str, body: impl FnOnce() -> R) -> R {
    if records() { program(|| phase(name, body)) } else { body() }
}

/// The call that the thread is in has read or written these bytes of files.
pub(crate) fn in_files(bytes: u64) {
    if records() {
        with(|recorder| recorder.open.as_mut().map(|open| open.sum.in_files += bytes));
    }
}

/// The program has declared some computing, and the virtual time of that has passed in `compute`.
pub(crate) fn work(compute: impl FnOnce()) {
    let begin = if records() { with(|recorder| (recorder.clock)()) } else { None };
    compute();
    if let Some(begin) = begin {
        with(|recorder| recorder.close(What::Work, "computing".into(), begin));
    }
}

/// The thread waits until this is dropped.
pub(crate) struct Waiting(Option<(String, Duration)>);

/// Begins a wait.
#[inline]
pub(crate) fn waiting(operation: impl FnOnce() -> String) -> Waiting {
    if !records() {
        return Waiting(None);
    }
    let operation = operation();
    Waiting(with(|recorder| (operation, (recorder.clock)())))
}

impl Drop for Waiting {
    #[inline]
    fn drop(&mut self) {
        if let Some((name, begin)) = self.0.take() {
            with(|recorder| recorder.close(What::Wait, name, begin));
        }
    }
}

impl Recorder {
    fn sums(&mut self) -> &mut Sums {
        self.phases.entry(self.phase).or_default()
    }

    /// Time goes on in another phase; when that is.
    fn change_phase(&mut self, phase: &'static str) -> Duration {
        let now = (self.clock)();
        let time = now.saturating_sub(self.since);
        self.sums().time += time;
        (self.phase, self.since) = (phase, now);
        now
    }

    fn enter(&mut self, name: &'static str, line: &'static Location<'static>) {
        self.depth += 1;
        if self.depth == 1 {
            self.open = Some(Open { name, line, begin: (self.clock)(), sum: Sum { calls: 1, ..Sum::default() } });
        }
    }

    fn leave(&mut self) {
        self.depth = self.depth.saturating_sub(1);
        if self.depth == 0 {
            self.end_call();
        }
    }

    fn end_call(&mut self) {
        let Some(Open { name, line, begin, mut sum }) = self.open.take() else { return };
        let end = (self.clock)();
        sum.time = end.saturating_sub(begin);
        self.sums().calls.entry(name.as_ptr().addr()).or_insert((name, Sum::default())).1.add(sum);
        self.keep(Slice { what: What::Call, name: name.into(), line: Some(line), begin, end });
    }

    fn pause(&mut self) {
        let open = self.open;
        self.end_call();
        self.outer.push((std::mem::take(&mut self.depth), open));
    }

    fn resume(&mut self) {
        let Some((depth, open)) = self.outer.pop() else { return };
        let begin = (self.clock)();
        self.depth = depth;
        self.open = open.map(|open| Open { begin, sum: Sum::default(), ..open });
    }

    /// Ends a part of a call, or one of the program itself.
    fn close(&mut self, what: What, name: String, begin: Duration) {
        let end = (self.clock)();
        let time = end.saturating_sub(begin);
        match (&mut self.open, what) {
            (Some(open), What::Wait) => open.sum.waited += time,
            (Some(open), What::Work) => open.sum.worked += time,
            (None, What::Wait) => {
                self.sums().waits.entry(name.clone()).or_default().add(Sum { calls: 1, time, waited: time, ..Sum::default() })
            }
            _ => {}
        }
        let line = self.open.map(|open| open.line);
        self.keep(Slice { what, name: name.into(), line, begin, end });
    }

    fn keep(&mut self, slice: Slice) {
        if self.slices.len() < self.most {
            self.slices.push(slice);
        } else {
            self.lost += 1;
        }
    }
}

/// `Type::method` from the name of a closure's type, such as `global_arrays::sync::lock::Lock::lock::{{closure}}`; only the method of an array.
fn method(name: &str) -> String {
    let path = name.trim_end_matches("::{{closure}}");
    let parts = parts(path);
    let bare = |part: &str| part.split('<').next().unwrap_or_default().to_owned();
    match parts[..] {
        [.., of, method] => {
            // `<impl path::Type<..>>`, or the type itself.
            let of = of.strip_prefix("<impl ").and_then(|of| of.strip_suffix('>')).unwrap_or(of);
            // `Trait for Type`.
            let of = of.rsplit(" for ").next().unwrap_or(of);
            match self::parts(of).last().map_or(String::new(), |of| bare(of)) {
                of if of == "GlobalArray" => bare(method),
                of => format!("{of}::{}", bare(method)),
            }
        }
        _ => bare(path),
    }
}

/// The parts of a path, which may have paths in angle brackets.
fn parts(path: &str) -> Vec<&str> {
    let (mut parts, mut from, mut depth) = (Vec::new(), 0, 0_usize);
    let mut last = ' ';
    for (at, sign) in path.char_indices() {
        match sign {
            '<' => depth += 1,
            '>' if last != '-' => depth = depth.saturating_sub(1),
            ':' if depth == 0 && last == ':' => {
                parts.push(&path[from..at - 1]);
                from = at + 1;
            }
            _ => {}
        }
        last = sign;
    }
    parts.push(&path[from..]);
    parts
}

#[cfg(test)]
mod tests {
    use std::{cell::RefCell, rc::Rc};

    use super::*;
    use crate::calls::located;

    #[test]
    fn methods_are_found_in_the_names_of_closures() {
        for (name, said) in [
            ("global_arrays::sync::lock::Lock::lock::{{closure}}", "Lock::lock"),
            (
                "global_arrays::array::transfer::<impl global_arrays::array::GlobalArray<f64,ndarray::Dim<[usize; 2]>>>::get_into<(A,B)>::{{closure}}",
                "get_into",
            ),
            ("a::<impl a::Trait<fn() -> u8> for b::Type<u8>>::f::{{closure}}::{{closure}}", "Type::f"),
            ("f::{{closure}}", "f"),
        ] {
            assert_eq!(method(name), said);
        }
    }

    fn spends(time: &Rc<RefCell<u64>>, nanos: u64) {
        *time.borrow_mut() += nanos;
    }

    /// A thread whose clock the test moves.
    #[test]
    fn time_belongs_to_the_outermost_call_but_not_that_of_the_program() {
        let time = Rc::new(RefCell::new(100));
        let clock = time.clone();
        start(1, Box::new(move || Duration::from_nanos(*clock.borrow())), 6);
        spends(&time, 1);
        work(|| spends(&time, 2));
        located(|| {
            spends(&time, 4);
            located(|| {
                let _wait = waiting(|| "an answer".into());
                spends(&time, 8);
                Ok(())
            })?;
            program(|| {
                spends(&time, 16);
                located(|| {
                    spends(&time, 32);
                    Ok(())
                })
            })?;
            work(|| spends(&time, 64));
            Ok(())
        })
        .unwrap();
        drop(waiting(|| "nobody".into()));
        // Of several jobs on one thread the first is recorded.
        assert!(!start(2, Box::new(|| Duration::ZERO), 6) && stop(2).is_none());
        let record = stop(1).unwrap();
        assert_eq!(record.ended - record.began, Duration::from_nanos(127));
        let nanos = |sum: &Sum| (sum.calls, sum.time.as_nanos(), sum.waited.as_nanos(), sum.worked.as_nanos());
        let (time, calls) = &record.phases[""];
        let sums: Vec<_> = calls.values().map(nanos).collect();
        // The test's own name twice: the inner call of the program, and the outer one.
        assert_eq!(sums, [(1, 0, 0, 0), (2, 12 + 32 + 64, 8, 64)], "{calls:?}");
        assert_eq!(time.as_nanos(), 127);
        let slices: Vec<_> = record.slices.iter().map(|slice| (slice.what, (slice.end - slice.begin).as_nanos())).collect();
        assert_eq!(
            slices,
            [(What::Work, 2), (What::Wait, 8), (What::Call, 12), (What::Call, 32), (What::Work, 64), (What::Call, 64)]
        );
        assert_eq!(record.lost, 1);
        assert!(stop(1).is_none());
        located(|| Ok(())).unwrap();
    }

    #[test]
    fn a_phase_has_the_time_that_no_inner_phase_has() {
        let time = Rc::new(RefCell::new(0));
        let clock = time.clone();
        start(1, Box::new(move || Duration::from_nanos(*clock.borrow())), 6);
        let call = |nanos| {
            located(|| {
                spends(&time, nanos);
                Ok(())
            })
        };
        call(1).unwrap();
        phase("outer", || {
            spends(&time, 2);
            phase("inner", || call(4).unwrap());
            call(8).unwrap();
        });
        spends(&time, 16);
        let record = stop(1).unwrap();
        let phases = record
            .phases
            .iter()
            .map(|(name, (time, calls))| (*name, time.as_nanos(), calls.values().map(|sum| sum.time.as_nanos()).sum::<u128>()));
        assert_eq!(phases.collect::<Vec<_>>(), [("", 17, 1), ("inner", 4, 4), ("outer", 10, 8)]);
        assert_eq!(record.slices.iter().filter(|slice| slice.what == What::Phase).count(), 2);
    }
}
