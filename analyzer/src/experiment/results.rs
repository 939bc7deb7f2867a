// SPDX-License-Identifier: MIT OR Apache-2.0
//! The results: a file of JSON lines that only grows.
//!
//! ```text
//! {"experiment":NAME,"identity":TEXT}          which experiment's; see Definition
//! {"cell":KEY,"run":0,"figures":{…}}           one measurement, synced before the next begins
//! ```
//! What a killed process left of a line is cut off. One process at a time has the file.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::definition::Repeat;
use super::{Cell, Definition, Error, Figures};

#[derive(PartialEq, Eq, Serialize, Deserialize)]
struct Header {
    experiment: String,
    identity: String,
}

impl Header {
    fn of(definition: &Definition) -> Header {
        Header {
            experiment: definition.name.clone(),
            identity: definition.identity.clone(),
        }
    }
}

/// One measurement of a cell.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// [`Cell::key`].
    pub cell: String,
    /// From 0, in each cell.
    pub run: usize,
    /// What it came to.
    pub figures: Figures,
}

/// The file, and what is in it.
#[derive(Debug)]
pub struct Results {
    path: PathBuf,
    /// Locked; None if they are only read.
    file: Option<File>,
    runs: Vec<Run>,
}

impl Results {
    /// Opens it to add to it, and makes it if it is not there.
    ///
    /// # Errors
    /// It cannot be read or written, somebody else has it, or it is another experiment's.
    pub fn open(path: &Path, definition: &Definition) -> Result<Results, Error> {
        let io = |source| Error::io(path, source);
        let mut options = OpenOptions::new();
        let options = options.read(true).append(true).create(true);
        let mut file = options.open(path).map_err(io)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(Error::wrong(path, "another experiment writes to it"));
            }
            Err(TryLockError::Error(error)) => return Err(io(error)),
        }
        let mut text = String::new();
        file.read_to_string(&mut text).map_err(io)?;
        let whole = whole(&text);
        file.set_len(whole.len() as u64).map_err(io)?;
        let mut results = Results {
            path: path.to_owned(),
            runs: parse(path, whole, definition)?,
            file: Some(file),
        };
        if whole.is_empty() {
            results.append(&Header::of(definition))?;
        }
        Ok(results)
    }

    /// Reads it; nothing if it is not there.
    ///
    /// # Errors
    /// It cannot be read, or is another experiment's.
    pub fn read(path: &Path, definition: &Definition) -> Result<Results, Error> {
        let text = match fs::read_to_string(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
            text => text.map_err(|source| Error::io(path, source))?,
        };
        Ok(Results {
            path: path.to_owned(),
            runs: parse(path, whole(&text), definition)?,
            file: None,
        })
    }

    /// Those of a cell.
    pub fn of<'s>(&'s self, cell: &Cell) -> impl Iterator<Item = &'s Run> + use<'s> {
        let key = cell.key();
        self.runs.iter().filter(move |run| run.cell == key)
    }

    /// Whether a cell has been measured often enough.
    pub fn is_done(&self, cell: &Cell, repeat: &Repeat) -> bool {
        let bytes: Vec<f64> = self
            .of(cell)
            .map(|r| r.figures.bytes_per_transaction())
            .collect();
        match bytes[..] {
            _ if bytes.len() >= repeat.most => true,
            [.., before, last] => {
                (last - before).abs() * 100.0 <= repeat.within_percent * before.max(last)
            }
            _ => false,
        }
    }

    /// Adds a measurement; it is on the disk then.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn add(&mut self, cell: &Cell, figures: Figures) -> Result<(), Error> {
        let run = Run {
            cell: cell.key(),
            run: self.of(cell).count(),
            figures,
        };
        self.append(&run)?;
        self.runs.push(run);
        Ok(())
    }

    /// Adds what others measured of some cells, beyond what is known here: they went on from these results.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn extend(&mut self, others: &Results, cells: &[&Cell]) -> Result<(), Error> {
        for cell in cells {
            for run in others.of(cell).skip(self.of(cell).count()) {
                self.add(cell, run.figures.clone())?;
            }
        }
        Ok(())
    }

    fn append(&mut self, line: &impl Serialize) -> Result<(), Error> {
        let mut write = || -> io::Result<()> {
            let file = self
                .file
                .as_mut()
                .ok_or(io::ErrorKind::ReadOnlyFilesystem)?;
            let mut text = serde_json::to_vec(line)?;
            text.push(b'\n');
            file.write_all(&text)?;
            file.sync_data()
        };
        write().map_err(|source| Error::io(&self.path, source))
    }
}

/// What a killed process left of a line is none.
fn whole(text: &str) -> &str {
    let end = text.rfind('\n').map_or(0, |end| end + 1);
    text.get(..end).unwrap_or_default()
}

fn parse(path: &Path, text: &str, definition: &Definition) -> Result<Vec<Run>, Error> {
    let wrong = |why: &str| Error::wrong(path, why);
    let mut lines = text.lines();
    match lines.next().map(serde_json::from_str::<Header>) {
        None => return Ok(Vec::new()),
        Some(Ok(found)) if found == Header::of(definition) => {}
        Some(Ok(_)) => {
            let why = "is of another experiment, or what is measured has changed: move it away";
            return Err(wrong(why));
        }
        Some(Err(_)) => return Err(wrong("is no file of an experiment's results")),
    }
    let run = |(at, line): (usize, &str)| {
        serde_json::from_str(line).map_err(|e| wrong(&format!("line {at}: {e}")))
    };
    (2..).zip(lines).map(run).collect()
}
