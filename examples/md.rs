//! Molecular dynamics of soft spheres in a periodic box. Each rank has the atoms of a slab of the box.
//!
//! In each step the atoms that leave a slab migrate to the rank that owns their new place, and neighbors exchange copies of the atoms
//! near their common border. At the end, a global array holds the forces of all atoms in the order of their numbers.

use std::array::from_fn;

use global_arrays::{
    bytemuck::{Pod, Zeroable},
    prelude::*,
};

/// Atoms along each side of the box, at distance 1 at the start.
const SIDE: usize = 8;
const ATOMS: usize = SIDE * SIDE * SIDE;
const LENGTH: f64 = SIDE as f64;

/// Two atoms repel each other like a spring below this distance.
const CUTOFF: f64 = 1.3;
const STIFFNESS: f64 = 50.0;

const STEPS: usize = 300;
const TIME_STEP: f64 = 0.005;

#[repr(C)]
#[derive(Clone, Copy, Pod, Zeroable)]
#[bytemuck(crate = "global_arrays::bytemuck")]
struct Atom {
    id: usize,
    position: [f64; 3],
    velocity: [f64; 3],
}

/// An atom at the start: its place in a cubic lattice, and a velocity without a pattern.
fn start(id: usize) -> Atom {
    let position = [id / (SIDE * SIDE), id / SIDE % SIDE, id % SIDE].map(|i| i as f64 + 0.5);
    let velocity = from_fn(|axis| {
        let k = (3 * id + axis) as f64;
        1.5 * (k * k).sin()
    });
    Atom { id, position, velocity }
}

/// Copies of the other ranks' atoms within the cutoff of this slab. Those from beyond an end of the box get coordinates beyond it.
fn halo(job: &Job, atoms: &[Atom]) -> Result<Vec<Atom>, Error> {
    let (me, ranks) = (job.rank(), job.size());
    let width = LENGTH / ranks as f64;
    let shifted = |atom: &Atom, by: f64| {
        let [x, y, z] = atom.position;
        Atom { position: [x + by, y, z], ..*atom }
    };
    let mut lists = vec![Vec::new(); ranks];
    for atom in atoms {
        if atom.position[0] < me as f64 * width + CUTOFF {
            lists[(me + ranks - 1) % ranks].push(shifted(atom, if me == 0 { LENGTH } else { 0.0 }));
        }
        if atom.position[0] > (me + 1) as f64 * width - CUTOFF {
            lists[(me + 1) % ranks].push(shifted(atom, if me == ranks - 1 { -LENGTH } else { 0.0 }));
        }
    }
    Ok(job.all_to_all_v(&lists)?.concat())
}

/// The force on each atom of this rank, and their potential energy.
fn forces(job: &Job, atoms: &[Atom]) -> Result<(Vec<[f64; 3]>, f64), Error> {
    let halo = halo(job, atoms)?;
    let mut forces = vec![[0.0; 3]; atoms.len()];
    let mut potential = 0.0;
    for (atom, force) in atoms.iter().zip(&mut forces) {
        for other in atoms.iter().chain(&halo).filter(|other| other.id != atom.id) {
            let mut apart: [f64; 3] = from_fn(|axis| atom.position[axis] - other.position[axis]);
            if apart[0].abs() > CUTOFF {
                continue;
            }
            apart[1..].iter_mut().for_each(|x| *x -= LENGTH * (*x / LENGTH).round());
            let distance = apart.iter().map(|x| x * x).sum::<f64>().sqrt();
            if distance < CUTOFF {
                let overlap = CUTOFF - distance;
                potential += 0.25 * STIFFNESS * overlap * overlap; // half of it belongs to the other atom
                force.iter_mut().zip(apart).for_each(|(f, x)| *f += STIFFNESS * overlap * x / distance);
            }
        }
    }
    Ok((forces, potential))
}

fn main() -> Result<(), Error> {
    run(|job| {
        let (me, ranks) = (job.rank(), job.size());
        let width = LENGTH / ranks as f64;
        if width < CUTOFF {
            return Err(Error::other(format!(
                "a slab of {ranks} ranks is thinner than the cutoff: start {} at most",
                (LENGTH / CUTOFF) as usize
            )));
        }
        let owner = |atom: &Atom| ((atom.position[0] / width) as usize).min(ranks - 1);
        let total_energy = |atoms: &[Atom], potential: f64| {
            let kinetic: f64 = atoms.iter().flat_map(|atom| atom.velocity).map(|v| 0.5 * v * v).sum();
            job.all_reduce_one(kinetic + potential, ops::sum)
        };

        let mut atoms: Vec<Atom> = (0..ATOMS).map(start).filter(|atom| owner(atom) == me).collect();
        let (mut force, potential) = forces(job, &atoms)?;
        let energy = total_energy(&atoms, potential)?;
        let (mut drift, mut moves) = (0.0, 0);
        for step in 1..=STEPS {
            for (atom, force) in atoms.iter_mut().zip(&force) {
                for (axis, force) in force.iter().enumerate() {
                    atom.velocity[axis] += 0.5 * TIME_STEP * force;
                    atom.position[axis] = (atom.position[axis] + TIME_STEP * atom.velocity[axis]).rem_euclid(LENGTH);
                }
            }
            let (stay, leave): (Vec<_>, Vec<_>) = atoms.into_iter().partition(|atom| owner(atom) == me);
            moves += leave.len();
            let mut lists = vec![Vec::new(); ranks];
            leave.into_iter().for_each(|atom| lists[owner(&atom)].push(atom));
            atoms = stay;
            atoms.extend(job.all_to_all_v(&lists)?.concat());

            let potential;
            (force, potential) = forces(job, &atoms)?;
            for (atom, force) in atoms.iter_mut().zip(&force) {
                atom.velocity.iter_mut().zip(force).for_each(|(v, f)| *v += 0.5 * TIME_STEP * f);
            }
            let change = (total_energy(&atoms, potential)? / energy - 1.0).abs();
            let count = job.all_reduce_one(atoms.len(), ops::sum)?;
            if count != ATOMS || !(0.0..1e-3).contains(&change) {
                return Err(Error::other(format!("after step {step} there are {count} atoms; the energy is off by {change:e}")));
            }
            drift = f64::max(drift, change);
        }

        let table = GlobalArray1::<[f64; 3]>::builder(job, ATOMS).name("forces").fill([f64::NAN; 3]).create()?;
        let ids: Vec<usize> = atoms.iter().map(|atom| atom.id).collect();
        table.scatter(&ids, &force)?;
        let net = table.sum()?;
        let moves = job.all_reduce_one(moves, ops::sum)?;
        if me == 0 {
            println!("{ATOMS} atoms, {STEPS} steps, {moves} moves to another rank");
            println!("the energy {energy:.6} drifts by {drift:.1e} at most");
        }
        // Newton's third law. What no rank wrote is not a number.
        if net.iter().all(|f| f.abs() < 1e-9) { Ok(()) } else { Err(Error::other(format!("the forces add up to {net:?}"))) }
    })
}
