//! The pure layers: what an operation pays before it touches memory.

use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use global_arrays::{
    distribution::{Distribution, Order},
    index::{IntoPatch, Patch},
};
use ndarray::{Ix2, s};

fn subscripts() -> impl Iterator<Item = [usize; 2]> {
    let mut state = 1_u64;
    std::iter::repeat_with(move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        [(state >> 54) as usize, (state >> 44 & 1023) as usize]
    })
}

fn ownership(c: &mut Criterion) {
    let extents = Ix2(1024, 1024);
    let distributions = [
        ("block", Distribution::block(&extents, 4, None, Order::RowMajor)),
        ("block-cyclic", Distribution::block_cyclic(&extents, &[32, 32], 4, None, Order::RowMajor)),
        ("irregular", Distribution::irregular(&extents, &[vec![0, 100, 900], vec![0, 500]], 6, Order::RowMajor)),
    ];
    for (name, distribution) in distributions {
        let distribution = distribution.expect("a distribution that can be");
        let mut random = subscripts();
        c.bench_function(&format!("locate/{name}"), |bench| {
            bench.iter(|| {
                let [i, j] = random.next().unwrap_or_default();
                distribution.locate(&Ix2(i, j))
            });
        });
        let patch = Patch::block(Ix2(400, 400), Ix2(300, 300));
        c.bench_function(&format!("pieces of 300x300/{name}"), |bench| {
            bench.iter(|| distribution.pieces(black_box(&patch)).map(|piece| piece.offset).sum::<usize>());
        });
    }
}

fn patches(c: &mut Criterion) {
    let extents = Ix2(1024, 1024);
    let mut random = subscripts();
    c.bench_function("resolve s![i..i+1, j..j+1]", |bench| {
        bench.iter(|| {
            let [i, j] = random.next().unwrap_or_default();
            s![i..(i + 1).min(1024), j..(j + 1).min(1024)].into_patch(&extents)
        });
    });
}

criterion_group!(benches, ownership, patches);
criterion_main!(benches);
