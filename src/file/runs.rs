//! Runs of bytes that a patch is made of.

/// Calls `f` for each chunk that a patch has elements of: its number, the place of these elements in the chunk, their place in the patch, and their
/// number along each axis.
pub(super) fn for_each_chunk<E>(
    shape: &[usize],
    chunk: &[usize],
    start: &[usize],
    count: &[usize],
    mut f: impl FnMut(usize, &[usize], &[usize], &[usize]) -> Result<(), E>,
) -> Result<(), E> {
    if count.contains(&0) {
        return Ok(());
    }
    let axes = shape.len();
    let first: Vec<usize> = (0..axes).map(|k| start[k] / chunk[k]).collect();
    let last: Vec<usize> = (0..axes).map(|k| (start[k] + count[k] - 1) / chunk[k]).collect();
    let (mut index, mut within, mut at, mut part) = (first.clone(), vec![0; axes], vec![0; axes], vec![0; axes]);
    loop {
        let mut number = 0;
        for k in 0..axes {
            let (begin, end) = (start[k].max(index[k] * chunk[k]), (start[k] + count[k]).min((index[k] + 1) * chunk[k]));
            (within[k], at[k], part[k]) = (begin - index[k] * chunk[k], begin - start[k], end - begin);
            number = number * shape[k].div_ceil(chunk[k]) + index[k];
        }
        f(number, &within, &at, &part)?;
        let Some(axis) = (0..axes).rev().find(|&axis| index[axis] < last[axis]) else { return Ok(()) };
        index[axis] += 1;
        index[axis + 1..].copy_from_slice(&first[axis + 1..]);
    }
}

/// Calls `f` for each run of `count` elements that begin at `start` in a box of `shape`, and at `at` in a box of `extents`: its place in either, and
/// its length, in elements.
pub(super) fn for_each_run<E>(
    [shape, start]: [&[usize]; 2],
    [extents, at]: [&[usize]; 2],
    count: &[usize],
    mut f: impl FnMut(usize, usize, usize) -> Result<(), E>,
) -> Result<(), E> {
    if count.contains(&0) {
        return Ok(());
    }
    // The last axes, as far as they are whole in both, and the one before them make a run.
    let mut outer = shape.len();
    while outer > 0 {
        outer -= 1;
        if count[outer] != shape[outer] || count[outer] != extents[outer] {
            break;
        }
    }
    let len: usize = count[outer..].iter().product();
    let strides = |extents: &[usize]| {
        let mut strides = vec![1; extents.len()];
        (1..extents.len()).rev().for_each(|k| strides[k - 1] = strides[k] * extents[k]);
        strides
    };
    let (there, here) = (strides(shape), strides(extents));
    let place = |strides: &[usize], index: &[usize]| index.iter().zip(strides).map(|(i, n)| i * n).sum::<usize>();
    let (mut from, mut to) = (place(&there, start), place(&here, at));
    let mut index = vec![0; outer];
    loop {
        f(from, to, len)?;
        let Some(axis) = (0..outer).rev().find(|&axis| index[axis] + 1 < count[axis]) else { return Ok(()) };
        index[axis] += 1;
        (from, to) = (from + there[axis], to + here[axis]);
        for k in axis + 1..outer {
            (from, to) = (from - index[k] * there[k], to - index[k] * here[k]);
            index[k] = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use ndarray::{ArrayD, IxDyn, SliceInfoElem};

    use super::*;

    #[test]
    fn runs_and_chunks_cover_a_patch_once() {
        let (shape, chunk) = ([5, 6, 7], [2, 4, 3]);
        let whole = ArrayD::from_shape_fn(IxDyn(&shape), |i| 100 * i[0] + 10 * i[1] + i[2]);
        for (start, count) in [
            ([0, 0, 0], [5, 6, 7]),
            ([1, 2, 3], [3, 3, 4]),
            ([4, 5, 6], [1, 1, 1]),
            ([2, 0, 0], [2, 6, 7]),
            ([0, 1, 0], [5, 2, 7]),
        ] {
            let slices: Vec<SliceInfoElem> = (0..3).map(|k| (start[k]..start[k] + count[k]).into()).collect();
            let expected: Vec<usize> = whole.slice(&slices[..]).iter().copied().collect();
            let flat = whole.as_slice().unwrap();
            let mut found = vec![usize::MAX; expected.len()];
            let mut runs = 0;
            for_each_run([&shape, &start], [&count, &[0; 3]], &count, |there, here, len| {
                runs += 1;
                found[here..here + len].copy_from_slice(&flat[there..there + len]);
                Ok::<(), ()>(())
            })
            .unwrap();
            assert_eq!(found, expected);
            let fewest = match count {
                [_, 6, 7] => 1,
                [planes, _, 7] => planes,
                [planes, rows, _] => planes * rows,
            };
            assert_eq!(runs, fewest);
            found.fill(usize::MAX);
            for_each_chunk(&shape, &chunk, &start, &count, |number, within, at, part| {
                let corner = [number / 6 * 2, number / 3 % 2 * 4, number % 3 * 3];
                for_each_run([&chunk, within], [&count, at], part, |there, here, len| {
                    for k in 0..len {
                        assert_eq!(found[here + k], usize::MAX);
                        let inside = [(there + k) / 12, (there + k) / 3 % 4, (there + k) % 3];
                        found[here + k] = 100 * (corner[0] + inside[0]) + 10 * (corner[1] + inside[1]) + corner[2] + inside[2];
                    }
                    Ok::<(), ()>(())
                })
            })
            .unwrap();
            assert_eq!(found, expected);
        }
        let none = |_, _, _| -> Result<(), ()> { unreachable!() };
        for_each_run([&[4, 0], &[0, 0]], [&[4, 0], &[0, 0]], &[4, 0], none).unwrap();
        let mut ones = 0;
        for_each_run([&[], &[]], [&[], &[]], &[], |_, _, len| {
            ones += len;
            Ok::<(), ()>(())
        })
        .unwrap();
        assert_eq!(ones, 1);
    }
}
