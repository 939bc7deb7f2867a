// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a map is to show of a filesystem that may not have been unmounted.

/// The program that lists the blocks of inodes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum By {
    /// Our own walker. If debugfs is installed, it is asked about the filesystem as a whole and about the journal, and a notice
    /// says what it reports differently.
    #[default]
    Walk,
    /// debugfs, for every inode whose tree the walker finds sound.
    Debugfs,
}

/// The state of a filesystem that a map shows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum State {
    /// The state that the next mount will find: ext4's journal is replayed, f2fs is rolled forward. Of a device that is mounted
    /// now, [`State::Mounted`].
    #[default]
    NextMount,
    /// The kernel's state of metadata that were read while the filesystem was mounted. An ext4 has newer blocks in the device's
    /// page cache than in its journal. f2fs's node blocks are on the disk, so it is rolled forward.
    Mounted,
    /// The blocks as they lie on the disk.
    AsIs,
}

/// How a map is built.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct How {
    /// The program that lists the blocks of ext4's inodes.
    pub by: By,
    /// The state that the map shows.
    pub state: State,
}

impl From<By> for How {
    fn from(by: By) -> How {
        How {
            by,
            ..How::default()
        }
    }
}

impl From<State> for How {
    fn from(state: State) -> How {
        How {
            state,
            ..How::default()
        }
    }
}
