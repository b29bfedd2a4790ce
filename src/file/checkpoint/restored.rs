//! Checkpoints that runs go on from.

use std::path::{Path, PathBuf};

use ndarray::Dimension;

use super::manifest::{Checks, Manifest, find, grain, head};
use crate::{
    algebra::PatchMut,
    calls::located,
    error::Result,
    file::{
        erased::{Erased, check_in},
        kind::{FileElement, Kind},
        npy,
        placed::Place,
        road::Share,
        visit::{Failure, Visit},
    },
    portable::{Portable, read_whole},
    sync::{Group, Op, fingerprint, text_fingerprint},
};

/// A checkpoint that a run goes on from.
#[derive(Debug)]
pub struct Restored {
    pub(super) group: Group,
    pub(super) folder: PathBuf,
    pub(super) manifest: Manifest,
    pub(super) values: Vec<u8>,
}

impl Restored {
    /// Where it is.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Names of its arrays.
    pub fn arrays(&self) -> impl Iterator<Item = &str> {
        self.manifest.arrays.iter().map(|(name, _)| name.as_str())
    }

    /// Fills an array or a patch of any distribution with a saved array of its shape, and checks every byte of it. Collective.
    ///
    /// # Errors
    /// A name that the checkpoint does not have; another element type or shape; bytes that are not as they were saved, named; a system error on any
    /// member, reported on all; the end of the job. If reading fails, the contents are unspecified.
    #[track_caller]
    pub fn read<T: FileElement, D: Dimension, S: Dimension>(&self, name: &str, target: PatchMut<'_, T, D, S>) -> Result<()> {
        located(|| {
            const OPERATION: &str = "restore";
            let file = self.folder.join(format!("{name}.npy"));
            let visit = Visit { group: &self.group, operation: OPERATION, path: &file };
            let target = target.resolve(OPERATION)?;
            check_in(OPERATION, &target, &self.group)?;
            self.group.settle(Op::File, fingerprint(&[text_fingerprint(name), target.fingerprint()]))?;
            let checks = visit.agreed(find(&self.manifest.arrays, name, "array"))?;
            let (variable, placed) = visit.first(|| {
                let contents = npy::open(&file)?;
                let (variable, placed) = contents.arrays.into_iter().next().ok_or_else(|| Failure::Format("is empty".into()))?;
                let Place::Contiguous { begin, .. } = &placed.place else { return Err(Failure::Format("is no array".into())) };
                if checks.first() != Some(&head(&file, *begin)?) {
                    return Err(Failure::Format("has a header that is not as it was saved".into()));
                }
                Ok((variable, placed))
            })?;
            let (kind, shape) = (Kind::of::<T>(), Erased::shape(&target));
            if variable.kind != kind || variable.shape != shape {
                let (found, expected) = (variable.descr(), kind.descr());
                let what = format!("has '{found}' of shape {:?}; '{expected}' of shape {shape:?} is expected", variable.shape);
                return Err(visit.format(what));
            }
            let share = Share::in_order(&self.group, &target, &placed, grain(&placed));
            let mut found = Checks::new(&placed);
            let moved = share.read(|bytes| found.add(bytes));
            let first = share.first() / grain(&placed);
            let wrong = found.end().into_iter().zip(first..).find(|(check, piece)| checks.get(piece + 1) != Some(check));
            let checked = moved.and_then(|()| match wrong {
                None => Ok(()),
                Some((_, piece)) => {
                    let bytes = grain(&placed) * placed.kind.size();
                    let (from, to) = (piece * bytes, ((piece + 1) * bytes).min(placed.bytes(&placed.shape)));
                    Err(Failure::Format(format!(
                        "is not as it was saved: the checksum of bytes {from} to {to} of its elements is another one; remove the folder to restore the checkpoint before it, if there is one"
                    )))
                }
            });
            visit.agree(checked)?;
            self.group.sync()
        })
    }

    /// A saved value. Local.
    ///
    /// # Errors
    /// A name that the checkpoint does not have; a value of another type, where that can be seen.
    #[track_caller]
    pub fn value<R: Portable>(&self, name: &str) -> Result<R> {
        located(|| {
            let visit = Visit { group: &self.group, operation: "restore", path: &self.folder };
            let [begin, end, _] = *visit.agreed(find(&self.manifest.values, name, "value"))?;
            let read = read_whole(&self.values[begin as usize..end as usize]);
            read.map_err(|error| visit.format(format!("has the value \"{name}\" as another type: {error}")))
        })
    }
}
