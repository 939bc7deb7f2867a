// SPDX-License-Identifier: MIT OR Apache-2.0
//! A cause: which task did what to which file.

use std::hash::{Hash, Hasher};

use strum::{FromRepr, IntoStaticStr, VariantArray};

use super::Operation;
use crate::attribute::{FileId, HashMap, ProcessId, StackId};

/// The number of a [`Cause`] in its list.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CauseId(pub u32);

impl CauseId {
    /// The cause is unknown.
    pub const UNKNOWN: CauseId = CauseId(0);
}

/// A thread, and the stack from which it made a call or began a handle. A thread is several callers if it was in several stacks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Caller {
    /// The thread.
    pub process: ProcessId,
    /// The stack; unknown unless stacks were recorded.
    pub stack: StackId,
}

impl Caller {
    /// The caller is unknown.
    pub const UNKNOWN: Caller = Caller {
        process: ProcessId::UNKNOWN,
        stack: StackId::UNKNOWN,
    };
}

impl From<ProcessId> for Caller {
    fn from(process: ProcessId) -> Caller {
        Caller {
            process,
            ..Caller::UNKNOWN
        }
    }
}

/// A user's task, an operation and the file that it was done to. Each of them may be unknown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cause {
    /// The thread of the task.
    pub process: ProcessId,
    /// The stack from which it did so.
    pub stack: StackId,
    /// The operation.
    pub operation: Option<Operation>,
    /// The file.
    pub file: FileId,
}

/// As two numbers, because every row's is looked up.
impl Hash for Cause {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        let operation = self
            .operation
            .map_or(0, |operation| 1 | (operation as u64) << 1);
        hasher.write_u64(u64::from(self.process.0) << 32 | u64::from(self.file.0));
        hasher.write_u64(u64::from(self.stack.0) << 32 | operation);
    }
}

impl Cause {
    /// Makes the cause of an operation that a caller did to a file.
    pub fn of(caller: Caller, operation: Operation, file: FileId) -> Cause {
        Cause {
            process: caller.process,
            stack: caller.stack,
            operation: Some(operation),
            file,
        }
    }
}

/// The certainty of a cause.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    Hash,
    PartialOrd,
    Ord,
    FromRepr,
    IntoStaticStr,
    VariantArray,
)]
#[strum(serialize_all = "snake_case")]
#[repr(u8)]
pub enum Known {
    /// The cause is unknown.
    #[default]
    Unknown,
    /// The cause contributed to a whole transaction or checkpoint, and has its proportion of the cost.
    Proportional,
    /// The cause is one of several possible ones.
    Set,
    /// The cause changed these bytes first; others may have changed them too.
    First,
    /// The cause is one of several that changed these bytes since they were last written, all of which are known.
    Shared,
    /// Every change of these bytes since they were last written was seen, and all of them are of this cause.
    Exact,
}

impl Known {
    /// Every value, in the order of their codes.
    pub const ALL: &[Known] = Known::VARIANTS;

    /// The word used in tables and files.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

/// All causes of a trace, each once.
pub(super) struct List {
    list: Vec<Cause>,
    by_cause: HashMap<Cause, CauseId>,
    /// The cause that was asked for last: what one task does to one file occurs in many rows, and each row asks again whose it is.
    last: (Cause, CauseId),
}

impl Default for List {
    fn default() -> Self {
        List {
            list: vec![Cause::default()],
            by_cause: HashMap::from_iter([(Cause::default(), CauseId::UNKNOWN)]),
            last: (Cause::default(), CauseId::UNKNOWN),
        }
    }
}

impl List {
    /// Returns the number of a cause, adding it if it is new.
    pub fn intern(&mut self, cause: Cause) -> CauseId {
        if self.last.0 != cause {
            let id = *self.by_cause.entry(cause).or_insert_with(|| {
                let number = self.list.len();
                self.list.push(cause);
                CauseId(u32::try_from(number).unwrap_or(0))
            });
            self.last = (cause, id);
        }
        self.last.1
    }

    /// Returns the number of causes.
    pub fn len(&self) -> usize {
        self.list.len()
    }

    /// Returns a cause by its number.
    pub fn get(&self, id: CauseId) -> Cause {
        match self.last {
            (cause, last) if last == id => cause,
            _ => self.list.get(id.0 as usize).copied().unwrap_or_default(),
        }
    }

    /// Returns the causes, indexed by number.
    pub fn into_list(self) -> Vec<Cause> {
        self.list
    }
}
