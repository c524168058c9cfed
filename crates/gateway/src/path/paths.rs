//! The paths of a tunnel by number. They are few and accessed for every packet, so they are stored
//! in a sorted vector.

use super::Path;
use crate::wire::PathId;

/// The paths, in the order of their numbers.
#[derive(Debug, Default)]
pub struct Paths {
    row: Vec<(PathId, Path)>,
}

impl Paths {
    fn find(&self, id: PathId) -> Result<usize, usize> {
        self.row.binary_search_by_key(&id, |&(id, _)| id)
    }

    /// Returns a path.
    #[must_use]
    pub fn get(&self, id: PathId) -> Option<&Path> {
        let at = self.find(id).ok()?;
        self.row.get(at).map(|(_, path)| path)
    }

    /// Returns a path.
    pub fn get_mut(&mut self, id: PathId) -> Option<&mut Path> {
        let at = self.find(id).ok()?;
        self.row.get_mut(at).map(|(_, path)| path)
    }

    /// Returns a path, which is created if there is none with this number.
    pub fn get_or_insert_with(&mut self, id: PathId, make: impl FnOnce() -> Path) -> &mut Path {
        let at = match self.find(id) {
            Ok(at) => at,
            Err(at) => {
                self.row.insert(at, (id, make()));
                at
            }
        };
        &mut self.row[at].1
    }

    /// All paths with their numbers.
    pub fn iter(&self) -> impl Iterator<Item = (PathId, &Path)> {
        self.row.iter().map(|(id, path)| (*id, path))
    }

    /// All paths with their numbers.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = (PathId, &mut Path)> {
        self.row.iter_mut().map(|(id, path)| (*id, path))
    }

    /// All paths.
    pub fn values(&self) -> impl Iterator<Item = &Path> {
        self.row.iter().map(|(_, path)| path)
    }

    /// All paths.
    pub fn values_mut(&mut self) -> impl Iterator<Item = &mut Path> {
        self.row.iter_mut().map(|(_, path)| path)
    }
}
