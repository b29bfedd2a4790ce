//! Arrays and patches without their types: positions as bytes.

use std::path::Path;

use ndarray::{ArrayView, ArrayViewMut, Dimension, ShapeBuilder};

use super::{
    kind::{FileElement, Kind},
    variable::Variable,
};
use crate::{
    algebra::IntoOperand,
    array::{Operand, reversed},
    calls::located,
    element::Element,
    error::{Error, Result},
    sync::Group,
};

/// Bytes of elements on their way, aligned for numbers.
#[derive(Debug, Default)]
pub(super) struct Stage(Vec<u128>);

impl Stage {
    /// The first bytes, with meaningless contents.
    pub(super) fn bytes(&mut self, len: usize) -> &mut [u8] {
        if self.0.len() * size_of::<u128>() < len {
            self.0.resize(len.div_ceil(size_of::<u128>()), 0);
        }
        &mut bytemuck::cast_slice_mut(&mut self.0)[..len]
    }
}

/// A box of positions, in the order of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Area {
    pub(super) start: Vec<usize>,
    pub(super) count: Vec<usize>,
}

/// What a file gets its elements from, or gives them to. Positions are in the order of the file, where the axes may be reversed.
pub(super) trait Erased {
    /// `None` for values that all members have.
    fn group(&self) -> Option<&Group>;
    fn name(&self) -> &str;
    fn kind(&self) -> Kind;
    fn shape(&self) -> Vec<usize>;
    /// What members must share.
    fn fingerprint(&self) -> u64;
    /// An error if it cannot be used.
    fn check(&self, operation: &'static str) -> Result<()>;
    /// What this member owns, if it is all of an array.
    fn own(&self, is_reversed: bool) -> Option<Vec<Area>>;
    /// The shape of the largest block, if it is all of an array.
    fn block(&self) -> Option<Vec<usize>>;
    /// The member that owns an element, if it is all of an array.
    fn owner(&self, index: &[usize]) -> Option<usize>;
    fn read(&self, area: &Area, is_reversed: bool, bytes: &mut [u8]) -> Result<()>;
    fn write(&self, area: &Area, is_reversed: bool, bytes: &[u8]) -> Result<()>;
}

impl<T: FileElement, D: Dimension, S: Dimension> Erased for Operand<'_, T, D, S> {
    fn group(&self) -> Option<&Group> {
        Some(self.array.group())
    }

    fn name(&self) -> &str {
        self.array.name()
    }

    fn kind(&self) -> Kind {
        Kind::of::<T>()
    }

    fn shape(&self) -> Vec<usize> {
        Operand::shape(self).slice().to_vec()
    }

    fn fingerprint(&self) -> u64 {
        Operand::fingerprint(self)
    }

    fn check(&self, operation: &'static str) -> Result<()> {
        self.array.check_sound(operation)
    }

    fn own(&self, is_reversed: bool) -> Option<Vec<Area>> {
        self.is_whole().then(|| {
            let in_file = |axes: &S| axes_of(axes.slice(), is_reversed);
            let area = |block: crate::distribution::Block<S>| Area {
                start: in_file(block.patch.start()),
                count: in_file(block.patch.count()),
            };
            self.array.own_blocks().map(area).collect()
        })
    }

    fn block(&self) -> Option<Vec<usize>> {
        let first = (0..self.array.group().size()).find_map(|member| self.array.blocks(member).next())?;
        self.is_whole().then(|| first.patch.count().slice().to_vec())
    }

    fn owner(&self, index: &[usize]) -> Option<usize> {
        let mut place = S::zeros(index.len());
        place.slice_mut().copy_from_slice(index);
        self.is_whole().then(|| self.array.distribution().locate(&place).member)
    }

    fn read(&self, area: &Area, is_reversed: bool, bytes: &mut [u8]) -> Result<()> {
        let (start, count) = positions::<D>(area, is_reversed);
        let elements = bytemuck::try_cast_slice_mut(bytes).map_err(|_| aligned::<T>())?;
        let view = ArrayViewMut::from_shape(count.clone().set_f(is_reversed), elements).expect("the bytes of as many elements");
        Operand::read(self, &start, &count, view)
    }

    fn write(&self, area: &Area, is_reversed: bool, bytes: &[u8]) -> Result<()> {
        let (start, count) = positions::<D>(area, is_reversed);
        let elements = bytemuck::try_cast_slice(bytes).map_err(|_| aligned::<T>())?;
        let view = ArrayView::from_shape(count.clone().set_f(is_reversed), elements).expect("the bytes of as many elements");
        Operand::write(self, &start, &count, &view)
    }
}

/// Values that all members have, along one axis.
#[derive(Debug)]
pub(super) struct Local<T>(pub(super) Vec<T>);

impl<T: FileElement> Erased for Local<T> {
    fn group(&self) -> Option<&Group> {
        None
    }

    fn name(&self) -> &str {
        ""
    }

    fn kind(&self) -> Kind {
        Kind::of::<T>()
    }

    fn shape(&self) -> Vec<usize> {
        vec![self.0.len()]
    }

    fn fingerprint(&self) -> u64 {
        self.0.len() as u64
    }

    fn check(&self, _: &'static str) -> Result<()> {
        Ok(())
    }

    fn own(&self, _: bool) -> Option<Vec<Area>> {
        None
    }

    fn block(&self) -> Option<Vec<usize>> {
        None
    }

    fn owner(&self, _: &[usize]) -> Option<usize> {
        None
    }

    fn read(&self, area: &Area, _: bool, bytes: &mut [u8]) -> Result<()> {
        let values = &self.0[area.start[0]..area.start[0] + area.count[0]];
        bytes.copy_from_slice(bytemuck::cast_slice(values));
        Ok(())
    }

    fn write(&self, _: &Area, _: bool, _: &[u8]) -> Result<()> {
        unreachable!("values of all members are written to files only")
    }
}

/// Axes in the order of a file, or of an array.
pub(super) fn axes_of(axes: &[usize], is_reversed: bool) -> Vec<usize> {
    if is_reversed { axes.iter().rev().copied().collect() } else { axes.to_vec() }
}

fn positions<D: Dimension>(area: &Area, is_reversed: bool) -> (D, D) {
    let of = |axes: &[usize]| {
        let mut positions = D::zeros(axes.len());
        positions.slice_mut().copy_from_slice(axes);
        if is_reversed { reversed(&positions) } else { positions }
    };
    (of(&area.start), of(&area.count))
}

fn aligned<T: Element>() -> Error {
    let (name, align) = (std::any::type_name::<T>(), align_of::<T>());
    Error::other(format!("elements of type {name} are aligned to {align} bytes; those of files to at most 16"))
}

/// Arrays and patches that a program gives to a file, with what is said of them, or why they cannot be used.
pub(super) type Given<'a> = Vec<(Variable, Result<Source<'a>>)>;

/// An array or a patch.
pub(super) type Source<'a> = Box<dyn Erased + 'a>;

/// An array or a patch under a name.
#[track_caller]
pub(super) fn given<'a, T, D, O>(operation: &'static str, name: &str, array: O) -> (Variable, Result<Source<'a>>)
where
    T: FileElement,
    D: Dimension + 'a,
    O: IntoOperand<T, D> + 'a,
    O::Axes: 'a,
{
    let operand = located(|| array.into_operand::<'a>().resolve(operation));
    let shape = operand.as_ref().map_or(Vec::new(), Erased::shape);
    (Variable::new(name, Kind::of::<T>(), &shape), operand.map(|operand| Box::new(operand) as Source<'a>))
}

/// All of them, if they can be used together, and their group.
pub(super) fn usable<'a>(
    operation: &'static str,
    path: &Path,
    given: Given<'a>,
) -> Result<(Group, Vec<Variable>, Vec<Source<'a>>)> {
    let (mut variables, mut sources) = (Vec::new(), Vec::new());
    for (variable, source) in given {
        variables.push(variable);
        sources.push(source?);
    }
    let Some(group) = sources.iter().find_map(|source| source.group()).cloned() else {
        return Err(Error::other(format!("{operation} {}: there is no array to write", path.display())));
    };
    sources.iter().try_for_each(|source| check_in(operation, &**source, &group))?;
    Ok((group, variables, sources))
}

/// An error if an array cannot be used, or by another group only.
pub(super) fn check_in(operation: &'static str, array: &dyn Erased, group: &Group) -> Result<()> {
    array.check(operation)?;
    if array.group().is_none_or(|own| own.is_like(group)) {
        return Ok(());
    }
    let what = format!("array \"{}\" is of another group than the file or the arrays before it", array.name());
    Err(Error::Mismatch { operation: operation.into(), what })
}
