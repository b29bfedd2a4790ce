//! Transfers with members whose memory is not mapped (`comm::engine::strided`).

use ndarray::Dimension;

use super::GlobalArray;
use crate::{
    calls::record,
    comm::engine::{
        Call,
        strided::{get_strided, put_strided, put_strided_and_raise},
    },
    distribution::{Location, Piece},
    element::Element,
    error::Result,
    index::Patch,
    memory::buffer::{Source, Target},
    sync::{Kind, SignalTarget},
};

impl<T: Element, D: Dimension> GlobalArray<T, D> {
    /// Adds to a call all gets of a patch from members that are not mapped, then copies from the others, so that the network
    /// works meanwhile. The caller completes the call before the buffer's life ends.
    pub(crate) fn issue_gets(&self, call: &Call, patch: &Patch<D>, to: &Target<'_, T, D>) -> Result<()> {
        // The patch is checked before its owners are counted.
        let pieces = self.remote_pieces(patch);
        self.count_patch(Kind::Get, patch);
        for (rank, at, piece) in pieces {
            get_strided(self.engine(), call, rank, at, &piece.strides, &to.window(&piece.start, &piece.count))?;
        }
        self.get_mapped(patch, to);
        Ok(())
    }

    /// Adds to a call all puts of a patch to members that are not mapped, then copies to the others; as
    /// [`issue_gets`](Self::issue_gets).
    pub(crate) fn issue_puts(&self, call: &Call, patch: &Patch<D>, from: &Source<'_, T, D>) -> Result<()> {
        // The patch is checked before its owners are counted.
        let pieces = self.remote_pieces(patch);
        self.count_patch(Kind::Put, patch);
        for (rank, at, piece) in pieces {
            put_strided(self.engine(), call, rank, at, &piece.strides, &from.window(&piece.start, &piece.count))?;
        }
        self.put_mapped(patch, from);
        Ok(())
    }

    /// Puts a patch that is one piece, and raises a signal of its owner, as one operation of the network. `None` if the network or the
    /// patch does not allow it; then nothing was done.
    pub(super) fn put_and_raise(
        &self,
        patch: &Patch<D>,
        from: &Source<'_, T, D>,
        signal: SignalTarget<'_>,
    ) -> Option<Result<()>> {
        let whole = |(_, _, piece): &(usize, usize, Piece<D>)| piece.count == *patch.count();
        let (rank, at, piece) = self.remote_pieces(patch).next().filter(whole)?;
        let word = signal.word_of(self.engine(), rank)?;
        let from = from.window(&piece.start, &piece.count);
        let put = put_strided_and_raise(self.engine(), &self.label("put_signal"), (rank, at), &piece.strides, &from, word)?;
        self.count_patch(Kind::Put, patch);
        signal.count();
        Some(put)
    }

    /// Whether the rank of a signal owns every element of a patch: raising it waits for them.
    pub(super) fn is_owned_by(&self, signal: SignalTarget<'_>, patch: &Patch<D>) -> bool {
        let inner = &self.group.inner;
        self.distribution.pieces(patch).all(|piece| signal.word_of(self.engine(), inner.rank_of(piece.member)).is_some())
    }

    /// Reads a patch that lies in one block of a member that is not mapped.
    #[inline(never)]
    #[track_caller]
    pub(super) fn get_single(
        &self,
        operation: &'static str,
        patch: &Patch<D>,
        to: &Target<'_, T, D>,
        location: Location,
        strides: &D,
    ) -> Result<()> {
        self.single(operation, Kind::Get, patch, location, |call, rank, at| {
            get_strided(self.engine(), call, rank, at, strides, to)
        })
    }

    /// Writes such a patch.
    #[inline(never)]
    #[track_caller]
    pub(super) fn put_single(
        &self,
        operation: &'static str,
        patch: &Patch<D>,
        from: &Source<'_, T, D>,
        location: Location,
        strides: &D,
    ) -> Result<()> {
        self.single(operation, Kind::Put, patch, location, |call, rank, at| {
            put_strided(self.engine(), call, rank, at, strides, from)
        })
    }

    #[inline(always)]
    #[track_caller]
    fn single(
        &self,
        operation: &'static str,
        kind: Kind,
        patch: &Patch<D>,
        location: Location,
        issue: impl FnOnce(&Call, usize, usize) -> Result<()>,
    ) -> Result<()> {
        let _recorded = record::call(operation);
        // As for pieces.
        assert!(patch.lies_inside(&self.extents), "a patch outside the array");
        let call = self.engine().begin(self.label(operation));
        self.count_patch(kind, patch);
        let issued = issue(&call, self.group.inner.rank_of(location.member), self.offset + location.offset * size_of::<T>());
        self.engine().finish_call(call, issued)
    }

    /// The pieces of a patch that are not mapped: the owner's rank, the first byte in its segment, the piece.
    fn remote_pieces<'a>(&'a self, patch: &'a Patch<D>) -> impl Iterator<Item = (usize, usize, Piece<D>)> + 'a {
        // The trait that makes patches is open to users: what it promises is checked before memory is named by it.
        assert!(patch.lies_inside(&self.extents), "a patch outside the array");
        self.distribution.pieces(patch).filter(|piece| self.counted_part(piece.member).is_none()).map(|piece| {
            let at = self.offset + piece.offset * size_of::<T>();
            (self.group.inner.rank_of(piece.member), at, piece)
        })
    }
}

#[cfg(test)]
mod tests {
    use std::{ops::Range, sync::Mutex};

    use ndarray::s;

    use crate::{
        SignalTarget,
        comm::{
            Capabilities,
            kit::mutex::count,
            testing::watched::{
                Asked::{self, Block, Flush, Get, Put, Signal as SignalOf},
                Lists, Watched,
            },
        },
        prelude::*,
    };

    const RANKS: usize = 3;
    const ROWS: usize = 8;
    /// Of each rank.
    const COLUMNS: usize = 4;
    /// All columns of rank 1: whole rows of them are one run of its memory.
    const OF_ONE: Range<usize> = COLUMNS..2 * COLUMNS;

    /// What the network of rank 0 is asked for by a call on an array of which each rank owns some columns, and what the array holds then.
    fn asked_by(
        limit: impl Fn(&mut Capabilities) + Sync,
        call: impl Fn(&Job, &GlobalArray<u16, Ix2>, &Signal) -> Result<(), Error> + Sync,
    ) -> (Vec<Asked>, Array2<u16>) {
        let (lists, seen) = (Lists::new(RANKS), Mutex::default());
        let body = |job: &Job| {
            let a = GlobalArray::builder(job, [ROWS, COLUMNS * RANKS]).grid([1, RANKS]).zeros().create()?;
            let signal = Signal::new(job.subgroup(&[1, 2, 0])?)?;
            assert_eq!(a.owner([ROWS - 1, COLUMNS])?, 1);
            job.sync()?;
            if job.rank() == 0 {
                lists.take(0);
                call(job, &a, &signal)?;
                let asked = lists.take(0);
                job.fence(1)?;
                *seen.lock().unwrap() = Some((asked, a.get(..)?));
            }
            job.sync()
        };
        let conduit = |member| Watched::conduit(member, lists.clone(), &limit);
        Launch::new().ranks(RANKS).timeout(30.0).run_over(conduit, body).unwrap();
        seen.into_inner().unwrap().expect("what rank 0 saw")
    }

    /// The signal of a rank, which has another number in the signal's group.
    fn at(signal: &Signal, rank: usize) -> SignalTarget<'_> {
        signal.at((rank + 2) % RANKS, 0)
    }

    fn as_it_is(_: &mut Capabilities) {}

    /// Elements that differ.
    fn numbered(rows: usize, columns: usize) -> Array2<u16> {
        Array2::from_shape_fn((rows, columns), |(i, j)| (10 * i + j + 1) as u16)
    }

    /// What a call of rank 0 takes of its thread, repeated, after one for the first time: locks of the crate, and allocations.
    fn cost_of(call: impl Fn(&GlobalArray<f64, Ix1>, &Array1<f64>) -> Result<(), Error> + Sync) -> (f64, u64) {
        const REPEATED: u64 = 20;
        let cost = Mutex::default();
        let launch = Launch::new().network("threads:packets+hidden").ranks(2).timeout(30.0);
        launch
            .run(|job| -> Result<(), Error> {
                let (a, value) = (GlobalArray::<f64, Ix1>::builder(job, [8]).zeros().create()?, Array1::from_elem(1, 2.5));
                assert_eq!(a.owner([7])?, 1);
                job.sync()?;
                if job.rank() == 0 {
                    call(&a, &value)?;
                    let before = count::so_far();
                    (0..REPEATED).try_for_each(|_| call(&a, &value))?;
                    let after = count::so_far();
                    *cost.lock().unwrap() = Some(((after.0 - before.0) as f64 / REPEATED as f64, after.1 - before.1));
                }
                job.sync()
            })
            .unwrap();
        cost.into_inner().unwrap().expect("what rank 0 counted")
    }

    #[test]
    fn small_operations_take_two_locks_and_no_memory() {
        for (name, (locks, allocations)) in [
            ("put", cost_of(|a, value| a.put(s![7..8], value))),
            ("accumulate", cost_of(|a, value| a.accumulate(s![7..8], 1.0, value))),
            ("store", cost_of(|a, _| a.store([7], 1.5))),
        ] {
            assert!(locks <= 2.0 && allocations == 0, "{name}: {locks} locks, {allocations} allocations in all");
        }
    }

    #[test]
    fn one_run_of_the_owner_is_one_operation_and_mapped_memory_takes_none() {
        let (asked, _) = asked_by(as_it_is, |_, a, _| a.put(s![2..4, OF_ONE], &numbered(2, COLUMNS)));
        assert_eq!(asked, [Put]);
        let (asked, _) = asked_by(as_it_is, |_, a, _| (0..3).try_for_each(|_| a.get(s![2..4, OF_ONE]).map(|_| ())));
        assert_eq!(asked, [Get; 3]);
        let (asked, _) = asked_by(as_it_is, |_, a, _| {
            a.put(s![2..4, ..COLUMNS], &numbered(2, COLUMNS))?;
            (0..3).try_for_each(|_| a.get(s![.., ..COLUMNS]).and_then(|_| a.load([2, 1])).map(|_| ()))
        });
        assert_eq!(asked, []);
    }

    #[test]
    fn one_run_of_the_owner_is_one_operation_with_its_signal() {
        let (asked, there) = asked_by(as_it_is, |_, a, signal| a.put_signal(s![2..4, OF_ONE], &numbered(2, 4), at(signal, 1)));
        assert_eq!(asked, [SignalOf(16)]);
        assert_eq!(there.slice(s![2..4, OF_ONE]), numbered(2, 4));
        // From columns of the caller.
        let (asked, there) = asked_by(as_it_is, |_, a, signal| a.put_signal(s![2..4, OF_ONE], numbered(4, 2).t(), at(signal, 1)));
        assert_eq!(asked, [SignalOf(16)]);
        assert_eq!(there.slice(s![2..4, OF_ONE]), numbered(4, 2).t());
        // In any number, without a flush.
        let (asked, there) = asked_by(as_it_is, |_, a, signal| {
            let rows = numbered(ROWS, COLUMNS);
            (0..ROWS).try_for_each(|row| a.put_signal(s![row, OF_ONE], rows.row(row), at(signal, 1)))
        });
        assert_eq!(asked, [SignalOf(8); ROWS]);
        assert_eq!(there.slice(s![.., OF_ONE]), numbered(ROWS, COLUMNS));
    }

    #[test]
    fn a_strided_patch_needs_no_flush_where_puts_stay_in_order() {
        let call = |_: &Job, a: &GlobalArray<u16, Ix2>, signal: &Signal| {
            a.put_signal(s![2..4, OF_ONE.start..OF_ONE.start + 2], &numbered(2, 2), at(signal, 1))
        };
        assert_eq!(asked_by(as_it_is, call).0, [Block, SignalOf(0)]);
        assert_eq!(asked_by(|network| network.native.blocks = false, call).0, [Put, Put, SignalOf(0)]);
        assert_eq!(asked_by(|network| network.order.put_put = false, call).0, [Block, Flush, SignalOf(0)]);
    }

    #[test]
    fn what_exceeds_a_transfer_goes_before_its_signal() {
        let call = |_: &Job, a: &GlobalArray<u16, Ix2>, signal: &Signal| {
            a.put_signal(s![2..4, OF_ONE], &numbered(2, COLUMNS), at(signal, 1))
        };
        assert_eq!(asked_by(|network| network.longest_transfer = 16, call).0, [SignalOf(16)]);
        assert_eq!(asked_by(|network| network.longest_transfer = 12, call).0, [Put, Put, SignalOf(0)]);
    }

    #[test]
    fn elements_of_others_are_fenced_before_the_signal() {
        let (two_owners, _) = asked_by(as_it_is, |_, a, signal| {
            let columns = OF_ONE.start..OF_ONE.end + 2;
            a.put_signal(s![2, columns.clone()], numbered(1, columns.len()).row(0), at(signal, 1))
        });
        assert_eq!(two_owners, [Put, Put, Flush, Flush, SignalOf(0)]);
        let (another, _) =
            asked_by(as_it_is, |_, a, signal| a.put_signal(s![2, OF_ONE], numbered(1, COLUMNS).row(0), at(signal, 2)));
        assert_eq!(another, [Put, Flush, SignalOf(0)]);
    }

    #[test]
    fn a_scope_fences_only_what_others_own() {
        let row = numbered(1, RANKS * COLUMNS);
        let (own, _) = asked_by(as_it_is, |job, a, signal| {
            job.scope(|scope| scope.put_signal(a, s![2, OF_ONE], row.slice(s![0, OF_ONE]), at(signal, 1)))
        });
        assert_eq!(own, [Put, SignalOf(0)]);
        let (all, _) =
            asked_by(as_it_is, |job, a, signal| job.scope(|scope| scope.put_signal(a, s![2, ..], row.row(0), at(signal, 1))));
        assert_eq!(all, [Put, Put, Flush, Flush, SignalOf(0)]);
    }

    #[test]
    fn without_signals_the_word_is_changed_behind_a_fence() {
        let call = |_: &Job, a: &GlobalArray<u16, Ix2>, signal: &Signal| {
            a.put_signal(s![2, OF_ONE], numbered(1, COLUMNS).row(0), at(signal, 1))
        };
        assert_eq!(asked_by(|network| network.native.signals = false, call).0, [Put, Flush]);
    }
}
