//! What works do when nothing is wrong: data, order, slots, depths.

use super::*;

#[test]
fn writes_and_reads_move_their_bytes_and_no_others() {
    for ([one, two], [pair, _]) in both(1, 3 << 20) {
        let lengths = [0, 1, 7, 8, 9, 64, 100, 4096, 5000, 64 << 10, 1 << 20];
        for (k, len) in lengths.into_iter().filter(|&len| len <= one.device.limits().longest_message).enumerate() {
            let bytes = pattern(k as u8, len);
            one.memory.write(3, &bytes);
            two.memory.write(0, &vec![0; len + 16]);
            one.post(pair, &[one.work(7, Opcode::Write { to: two.target(5) }, 3, len)]);
            assert_eq!(one.outcomes(1), [(7, Ok(Done::Written))]);
            assert_eq!(two.memory.read(5, len), bytes);
            assert_eq!((two.memory.read(0, 5), two.memory.read(5 + len, 8)), (vec![0; 5], vec![0; 8]));

            one.memory.write((1 << 20) + 100, &vec![0; len + 16]);
            one.post(pair, &[one.work(8, Opcode::Read { from: two.target(5) }, (1 << 20) + 103, len)]);
            assert_eq!(one.outcomes(1), [(8, Ok(Done::Read))]);
            assert_eq!(one.memory.read((1 << 20) + 103, len), bytes);
            assert_eq!(
                (one.memory.read((1 << 20) + 100, 3), one.memory.read((1 << 20) + 103 + len, 8)),
                (vec![0; 3], vec![0; 8])
            );
        }
        assert_eq!(two.poll(), []);
    }
}

#[test]
fn inline_data_are_taken_during_the_post() {
    for ([one, two], [pair, _]) in both(1, 4096) {
        let write = |id, value: u64, fence| {
            one.memory.word(0).store(value, Ordering::Relaxed);
            // The key is not looked at.
            let local = WorkPiece { key: 12345, ..one.piece(0, 8) };
            let work =
                Work { id, kind: Opcode::Write { to: two.target(8 * id as usize) }, local, signaled: true, inline: true, fence };
            one.post(pair, &[work]);
            one.memory.word(0).store(0, Ordering::Relaxed);
        };
        (0..10).for_each(|id| write(id, 100 + id, id % 2 == 0));
        assert_eq!(one.completions(10).len(), 10);
        (0..10).for_each(|id| assert_eq!(load(&two, 8 * id), 100 + id as u64));
    }
}

#[test]
fn sends_take_the_receives_in_their_order() {
    for ([one, two], [pair, other]) in both(1, 4096) {
        for id in 0..3 {
            two.receive(id, 100 * id as usize, 100);
        }
        let works = [(10, 100, Some(5)), (11, 0, None), (12, 60, Some(u32::MAX))].map(|(id, len, immediate)| {
            one.memory.write(100 * (id as usize - 10), &pattern(id as u8, len));
            one.work(id, Opcode::Send { immediate }, 100 * (id as usize - 10), len)
        });
        one.post(pair, &works);
        assert_eq!(one.outcomes(3), [10, 11, 12].map(|id| (id, Ok(Done::Sent))));
        let received = |len, immediate| Ok(Done::Received { len, immediate, from: None });
        let completions = two.completions(3);
        assert!(completions.iter().all(|completion| completion.number == other.number));
        let outcomes: Vec<_> = completions.iter().map(|completion| (completion.id, completion.outcome)).collect();
        assert_eq!(outcomes, [(0, received(100, Some(5))), (1, received(0, None)), (2, received(60, Some(u32::MAX)))]);
        assert_eq!((two.memory.read(0, 100), two.memory.read(200, 60)), (pattern(10, 100), pattern(12, 60)));
    }
}

#[test]
fn atomics_change_the_word_and_bring_its_old_value() {
    for ([one, two], [pair, _]) in both(1, 4096) {
        two.memory.word(64).store(40, Ordering::Relaxed);
        let swap = |expected, value| Opcode::CompareSwap { at: two.target(64), expected, value };
        let works = [add(two.target(64), 2), swap(42, u64::MAX), swap(42, 7), add(two.target(64), 1)];
        for (id, kind) in works.into_iter().enumerate() {
            one.post(pair, &[one.work(id as u64, kind, 8 * id, 8)]);
        }
        assert_eq!(one.outcomes(4), [0, 1, 2, 3].map(|id| (id, Ok(Done::Swapped))));
        assert_eq!([0, 8, 16, 24].map(|at| load(&one, at)), [40, 42, u64::MAX, u64::MAX]);
        assert_eq!(load(&two, 64), 0);
    }
}

/// The number of seeds, of 100, where a read brings what a later write put there.
fn overtaken(fence: bool) -> usize {
    let overtaken = |seed| {
        let ([one, two], [pair, _]) = two_ends(seed, 4096);
        two.memory.word(0).store(1, Ordering::Relaxed);
        one.memory.word(8).store(2, Ordering::Relaxed);
        let write = Work { fence, ..one.work(1, Opcode::Write { to: two.target(0) }, 8, 8) };
        one.post(pair, &[one.work(0, Opcode::Read { from: two.target(0) }, 0, 8), write]);
        // In order whatever happens at the target.
        assert_eq!(one.outcomes(2), [(0, Ok(Done::Read)), (1, Ok(Done::Written))]);
        load(&one, 0) == 2
    };
    (0..100).filter(|&seed| overtaken(seed)).count()
}

#[test]
fn a_fence_keeps_later_works_behind_a_read() {
    assert!((10..90).contains(&overtaken(false)), "{} reads were overtaken", overtaken(false));
    assert_eq!(overtaken(true), 0);
}

#[test]
fn what_was_asked_before_is_answered_before_a_work_fails() {
    for seed in 0..100 {
        let ([one, two], [pair, _]) = two_ends(seed, 64);
        let read = |id| one.work(id, Opcode::Read { from: two.target(0) }, 8 * id as usize, 8);
        one.post(pair, &[read(0), read(1), one.work(2, Opcode::Write { to: two.target(64) }, 0, 8), read(3)]);
        let [done, failed] = [Ok(Done::Read), Err(WorkFailure::RemoteAccess)];
        assert_eq!(one.outcomes(4), [(0, done), (1, done), (2, failed), (3, Err(WorkFailure::Flushed))]);
    }
}

/// The number of seeds, of 50, that end three reads well.
fn reads_end_well(read_depth: u8, answer_depth: u8) -> usize {
    let end_well = |seed| {
        let fabric = fabric(seed);
        let [one, two] = [(); 2].map(|()| BareEnd::new(&fabric, 4096));
        let [pair, _] = connect(&one, &two, Manner { read_depth, answer_depth, ..MANNER });
        let kinds = [Opcode::Read { from: two.target(0) }, add(two.target(0), 1), Opcode::Read { from: two.target(0) }];
        one.post(pair, &[0, 1, 2].map(|k| one.work(k, kinds[k as usize], 8 * k as usize, 8)));
        let outcomes = one.completions(3);
        let first = outcomes.iter().find_map(|completion| completion.outcome.err());
        assert!(first.is_none_or(|failure| failure == WorkFailure::RemoteInvalid), "{first:?}");
        first.is_none()
    };
    (0..50).filter(|&seed| end_well(seed)).count()
}

#[test]
fn reads_beyond_the_depth_wait_and_more_than_the_peer_answers_are_an_error() {
    assert_eq!([reads_end_well(1, 1), reads_end_well(2, 2), reads_end_well(2, 16)], [50; 3]);
    assert!((1..50).contains(&reads_end_well(2, 1)));
    assert!((1..50).contains(&reads_end_well(16, 2)));
}

#[test]
fn slots_are_free_only_when_a_later_signaled_work_was_polled() {
    let fabric = fabric(1);
    let [one, two] = [(); 2].map(|()| BareEnd::new(&fabric, 4096));
    let pairs = [&one, &two].map(|end| end.device.create(4).unwrap());
    connect_side(&one, pairs[0], &two, pairs[1], MANNER);
    connect_side(&two, pairs[1], &one, pairs[0], MANNER);
    let work = |id, signaled| Work { signaled, ..one.work(id, Opcode::Write { to: two.target(0) }, 0, 8) };
    one.post(pairs[0], &[0, 1, 2].map(|id| work(id, false)));
    // They are done, and nobody was told.
    assert_eq!(one.poll(), []);
    assert_eq!(one.try_post(pairs[0], &[work(3, true), work(4, true)]), Ok(1));
    assert_eq!(one.try_post(pairs[0], &[work(5, true)]), Ok(0));
    assert_eq!(one.outcomes(1), [(3, Ok(Done::Written))]);
    assert_eq!(one.try_post(pairs[0], &[6, 7, 8, 9, 10].map(|id| work(id, id == 7))), Ok(4));
    assert_eq!(one.outcomes(1), [(7, Ok(Done::Written))]);
    assert_eq!(one.try_post(pairs[0], &[11, 12, 13].map(|id| work(id, true))), Ok(2));
}

#[test]
fn a_pair_may_be_connected_to_another_of_its_device_or_to_itself() {
    let end = BareEnd::new(&fabric(1), 4096);
    let pairs = [(); 3].map(|()| end.device.create(4).unwrap());
    connect_side(&end, pairs[0], &end, pairs[1], MANNER);
    connect_side(&end, pairs[1], &end, pairs[0], MANNER);
    connect_side(&end, pairs[2], &end, pairs[2], MANNER);
    end.memory.word(0).store(9, Ordering::Relaxed);
    end.post(pairs[0], &[end.work(0, Opcode::Write { to: end.target(8) }, 0, 8)]);
    end.post(pairs[2], &[end.work(1, Opcode::Read { from: end.target(8) }, 16, 8)]);
    assert_eq!(end.completions(2).iter().map(|done| done.number).collect::<Vec<_>>(), [pairs[0].number, pairs[2].number]);
    assert_eq!([load(&end, 8), load(&end, 16)], [9, 9]);
}

#[test]
fn numbers_are_used_again_and_ids_are_not() {
    let end = BareEnd::new(&fabric(1), 64);
    let old = end.device.create(4).unwrap();
    end.device.destroy(old).unwrap();
    let new = end.device.create(4).unwrap();
    assert_eq!(old.number, new.number);
    assert!(end.device.destroy(old).is_err());
    assert!(end.device.modify(old, To::Reset).is_err());
    end.device.modify(new, To::Reset).unwrap();
}
