//! Factors of matrices in square blocks that are dealt round to a grid of the members, as ScaLAPACK and HPL have them, with one-sided transfers in place of messages.
//!
//! | file | contents |
//! |---|---|
//! | `axis`, `place` | which member owns which rows and columns |
//! | `column`, `exchange` | what members send each other, by channels |
//! | `panel`, `swaps`, `trailing`, `general` | LU: a panel, its interchanges, the update right of it, and the whole |
//! | `positive` | Cholesky |
//! | `triangle` | triangular solves on one member |
//! | `factors` | what is kept, and solves by it |
//!
//! # Panels
//! The method is HPL's (A. Petitet, R. C. Whaley, J. Dongarra, A. Cleary, *HPL — a portable implementation of the High-Performance Linpack benchmark*,
//! netlib.org/benchmark/hpl).
//! The matrix has w × w blocks on P × Q members, column by column. Panels are numbered k = 0..K, K = ⌈n/w⌉; p_k = k mod P and q_k = k mod Q own the
//! diagonal block of panel k. **Step k** of LU, on member (p, q):
//!
//! 1. *Panel k.* In process column q_k it is there since step k − 1 (panel 0: factored before the first step). Elsewhere: wait for it, pass it on along the
//!    process row, copy it out of its slot.
//! 2. *Row moves* of the columns of panel k + 1, where they are ([`swaps::RowMoves`] from the pivots). Every member of a process column then has all rows of
//!    U₁₂ before its solve, so all solve, and nothing is sent after it. With P = 1 each strip moves its own rows in 4.
//! 3. *Look-ahead.* If q = q_{k+1}: solve and update the columns of panel k + 1 only, factor it with the process column ([`panel::factor`]), and send it.
//! 4. *Update.* The same row moves for the other own columns right of panel k, then strip by strip: U ← L₁₁⁻¹·U, C ← C − L₂₁·U.
//!
//! While process column q_{k+1} is in 3, the others are in 4: that is the overlap. No barrier in the whole loop. A member of several cores factors panel k + 1
//! by its own thread while its pool is in 4.
//!
//! **A matrix without such factors** is found by process column q_k alike on all its members; the status word of the panel tells the others.
//!
//! **L of LU is stored in the order of rows of its own step**: columns left of a panel are never swapped (so LINPACK, unlike LAPACK).
//! It saves a pass over half the matrix, and L₂₁ in place is what was sent.
//!
//! # Cholesky
//! Step k is the same without row moves: the owner of the diagonal block factors it, the members of its process column solve for their rows of L₂₁ and send
//! them along the process rows, and each member gets those rows of L₂₁ that belong to its columns along its process column, as LU gets rows of U.
//!
//! **Leading dimension.** 4096 rows of f64 are 8 pages exactly: rows of neighboring columns fall into the same few sets of every cache. So an array that is
//! made for factors has a few rows more than the matrix ([`factors`]); a matrix that is factored in place has none.

mod axis;
mod column;
mod exchange;
mod factors;
mod general;
mod panel;
mod place;
mod positive;
mod solve;
mod swaps;
mod trailing;
mod triangle;

pub(super) use self::{
    factors::{Factors, Triangle, copy, not_finite},
    general::Pivoted,
    place::Place,
    positive::Positive,
};
pub use self::{place::Blocking, trailing::Phases};
