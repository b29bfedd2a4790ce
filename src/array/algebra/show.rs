//! Arrays as text. Member 0 fetches one row at a time, and of a long row only what is shown.

use std::{
    fmt::{self, Display},
    io::{self, Write},
};

use ndarray::Dimension;

use super::{Elements, Operand};
use crate::{
    array::GlobalArray,
    calls::located,
    distribution::{Distribution, Order},
    element::Element,
    error::{Error, Result},
};

/// ndarray: arrays with fewer elements are shown in full.
const MANY: usize = 500;

/// ndarray: longest axes without an ellipsis: the last, the one before it, the others.
const LIMITS: [usize; 3] = [11, 11, 6];

/// Members whose part a [`Summary`] lists; of more, as many are shown at both ends together.
const LISTED: usize = 16;

/// # Text
impl<T: Element + Display, D: Dimension> GlobalArray<T, D> {
    /// Writes the array as text: a line with its name and its indices, then the elements like `{}` of an ndarray, and a line break.
    /// Collective; only member 0 writes, and the other members' writers are not used.
    ///
    /// # Errors
    /// An error of the writer, on member 0; the errors of [`fill`](Self::fill).
    ///
    /// # Examples
    /// ```
    /// use global_arrays::prelude::*;
    /// # fn main() -> Result<(), Error> {
    /// Launch::new().ranks(2).network("threads").run(|job| {
    ///     let a = GlobalArray2::<i64>::builder(job, [2, 3]).name("A").fill(7).create()?;
    ///     let mut text = Vec::new();
    ///     a.write_to(&mut text)?;
    ///     if job.rank() == 0 {
    ///         assert_eq!(text, b"A[0..2, 0..3] =\n[[7, 7, 7],\n [7, 7, 7]]\n");
    ///     }
    ///     a.at(s![1, ..;2]).print()?; // A[1, 0..3;2] = ..
    ///     Ok(())
    /// })
    /// # }
    /// ```
    ///
    /// # Source
    /// GA: `GA_Print`.
    #[doc(alias("GA_Print", "GA_Print_file"))]
    #[track_caller]
    pub fn write_to(&self, to: impl Write) -> Result<()> {
        located(move || self.all().write_text("write_to", to))
    }

    /// Writes the array to the standard output of member 0, like [`write_to`](Self::write_to). Collective.
    ///
    /// # Errors
    /// Same as that method.
    #[track_caller]
    pub fn print(&self) -> Result<()> {
        located(move || self.all().write_text("print", io::stdout()))
    }
}

impl<T: Element + Display, D: Dimension, S: Dimension> Operand<'_, T, D, S> {
    pub(super) fn write_text(&self, operation: &'static str, to: impl Write) -> Result<()> {
        let section = self.array.enter(operation, &[self.fingerprint()], Elements::All)?;
        let written = if self.array.group.member() == 0 {
            let shape = self.shape();
            let (axes, len) = (shape.ndim(), shape.size());
            let mut text = Text { from: self, operation, shape, in_full: len < MANY, to, row: Vec::new() };
            let elements = text.put(&format!("{self} =\n")).and_then(|()| match len {
                // ndarray shows any array without elements by its brackets only.
                0 => text.put(&format!("{}{}", "[".repeat(axes), "]".repeat(axes))),
                _ => text.nested(0, &mut D::zeros(axes)),
            });
            elements.and_then(|()| text.put("\n"))
        } else {
            Ok(())
        };
        section.leave(written)
    }
}

/// The array's [summary](GlobalArray::summary).
impl<T: Element, D: Dimension> Display for GlobalArray<T, D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.summary().fmt(f)
    }
}

/// An array on its way to a writer.
struct Text<'a, T, D, S, W> {
    from: &'a Operand<'a, T, D, S>,
    operation: &'static str,
    shape: D,
    in_full: bool,
    to: W,
    row: Vec<T>,
}

impl<T: Element + Display, D: Dimension, S: Dimension, W: Write> Text<'_, T, D, S, W> {
    /// Writes what lies below `position` on the axes from `axis` on.
    fn nested(&mut self, axis: usize, position: &mut D) -> Result<()> {
        let axes = self.shape.ndim();
        if axis == axes {
            let value = self.fetch(position, 1)?;
            return self.row_text(value);
        }
        let len = self.shape[axis];
        let shown = self.shown(axis, len);
        self.put("[")?;
        if axis + 1 == axes {
            for (k, (start, count)) in shown.into_iter().enumerate() {
                if k > 0 {
                    self.put(", ..., ")?;
                }
                position[axis] = start;
                let count = self.fetch(position, count)?;
                self.row_text(count)?;
            }
        } else {
            let separator = format!(",\n{}{}", "\n".repeat(axes - axis - 2), " ".repeat(axis + 1));
            for (k, (start, count)) in shown.into_iter().enumerate() {
                if k > 0 {
                    self.put(&format!("{separator}...{separator}"))?;
                }
                for index in start..start + count {
                    if index > start {
                        self.put(&separator)?;
                    }
                    position[axis] = index;
                    self.nested(axis + 1, position)?;
                }
            }
        }
        position[axis] = 0;
        self.put("]")
    }

    /// Starts and lengths of what is shown of an axis: all of it, or both ends.
    fn shown(&self, axis: usize, len: usize) -> Vec<(usize, usize)> {
        let limit = LIMITS[(self.shape.ndim() - 1 - axis).min(LIMITS.len() - 1)];
        if self.in_full || len <= limit {
            return vec![(0, len)];
        }
        let edge = limit / 2;
        vec![(0, edge), (len - edge, edge)]
    }

    /// Fetches `count` elements along the last axis; answers how many.
    fn fetch(&mut self, position: &D, count: usize) -> Result<usize> {
        let mut counts = position.clone();
        counts.slice_mut().fill(1);
        if let Some(last) = counts.slice_mut().last_mut() {
            *last = count;
        }
        self.row.resize(count, T::zeroed());
        let view = self.from.box_view(&counts, &mut self.row);
        self.from.read(position, &counts, view)?;
        Ok(count)
    }

    fn row_text(&mut self, count: usize) -> Result<()> {
        let values = self.row[..count].iter().map(ToString::to_string).collect::<Vec<_>>();
        self.put(&values.join(", "))
    }

    fn put(&mut self, text: &str) -> Result<()> {
        let operation = self.operation;
        self.to.write_all(text.as_bytes()).map_err(|error: io::Error| Error::system(operation, error))
    }
}

/// # Queries: summary
impl<T: Element, D: Dimension> GlobalArray<T, D> {
    /// A summary of the array: name, type, extents, and which member owns which elements. Local. Print it with `{}`.
    ///
    /// # Source
    /// GA: `GA_Summarize`, `GA_Print_distribution`.
    #[doc(alias("GA_Summarize", "GA_Print_distribution"))]
    #[must_use]
    pub fn summary(&self) -> Summary<D> {
        Summary {
            name: self.name.to_string(),
            element: std::any::type_name::<T>(),
            element_bytes: size_of::<T>(),
            distribution: self.distribution.clone(),
        }
    }
}

/// A summary of an array; see [`GlobalArray::summary`].
#[derive(Clone, Debug)]
pub struct Summary<D> {
    name: String,
    element: &'static str,
    element_bytes: usize,
    distribution: Distribution<D>,
}

impl<D: Dimension> Summary<D> {
    /// Name of the array.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Name of the element's type.
    #[must_use]
    pub fn element(&self) -> &'static str {
        self.element
    }

    /// Bytes of all elements together.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.distribution.extents().size() * self.element_bytes
    }

    /// Bytes of the elements that a member owns.
    #[must_use]
    pub fn bytes_of(&self, member: usize) -> usize {
        self.distribution.local_len(member) * self.element_bytes
    }

    /// Which member owns which elements.
    #[must_use]
    pub fn distribution(&self) -> &Distribution<D> {
        &self.distribution
    }

    fn write_member(&self, f: &mut fmt::Formatter<'_>, member: usize) -> fmt::Result {
        write!(f, "\n  member {member}: ")?;
        let mut blocks = self.distribution.blocks(member);
        let Some(first) = blocks.next() else {
            return f.write_str("nothing");
        };
        let (start, count) = (first.patch.start().slice(), first.patch.count().slice());
        let ranges = start.iter().zip(count).map(|(start, count)| format!("{start}..{}", start + count));
        write!(f, "[{}]", ranges.collect::<Vec<_>>().join(", "))?;
        let others = blocks.count();
        if others > 0 {
            write!(f, " and {others} more blocks")?;
        }
        write!(f, ", {} bytes", self.bytes_of(member))
    }
}

impl<D: Dimension> Display for Summary<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let distribution = &self.distribution;
        let order = if distribution.order() == Order::RowMajor { "row-major" } else { "column-major" };
        let extents = distribution.shape();
        writeln!(f, "array \"{}\": {} {:?}, {} bytes", self.name, self.element, extents, self.bytes())?;
        write!(f, "  {} on grid {:?}", distribution.kind(), distribution.grid())?;
        if let Some(block) = distribution.block_shape() {
            write!(f, ", blocks of {block:?}")?;
        }
        if let Some(ghosts) = distribution.ghosts() {
            write!(f, ", ghost cells {:?}", ghosts.widths.slice())?;
        }
        write!(f, ", {order} parts, {} members", distribution.members())?;
        if let Some(owners) = distribution.owners() {
            write!(f, ", {} of them owners", owners.count())?;
        }
        let members = distribution.members();
        if members <= LISTED {
            return (0..members).try_for_each(|member| self.write_member(f, member));
        }
        (0..LISTED / 2).try_for_each(|member| self.write_member(f, member))?;
        f.write_str("\n  ...")?;
        (members - LISTED / 2..members).try_for_each(|member| self.write_member(f, member))
    }
}
