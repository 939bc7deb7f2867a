// SPDX-License-Identifier: MIT OR Apache-2.0
//! The results: a file of JSON lines that only grows.
//!
//! ```text
//! {"experiment":NAME,"identity":TEXT}          which experiment's; see Definition
//! {"cell":KEY,"run":0,"figures":{…}}           one measurement, synced before the next begins
//! ```
//! An incomplete last line, left by a killed process, is removed once the lines before it prove to belong to the experiment.
//! Only one process at a time can write the file.

use std::fs::{self, File, TryLockError};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use mostrace_bundle::outfile;
use serde::{Deserialize, Serialize};

use super::{Cell, Definition, Error, Figures, Repeat};

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
    /// The cell's [`Cell::key`].
    pub cell: String,
    /// Number of the run in its cell, from 0.
    pub run: usize,
    /// The measured figures.
    pub figures: Figures,
}

/// A file of results and its contents.
#[derive(Debug)]
pub struct Results {
    path: PathBuf,
    /// The locked file; None if the results are only read.
    file: Option<File>,
    runs: Vec<Run>,
}

impl Results {
    /// Opens the file to append to it, creating it if it does not exist.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read or written, another process has locked it, or it belongs to another
    /// experiment.
    pub fn open(path: &Path, definition: &Definition) -> Result<Results, Error> {
        let io = |source| Error::io(path, source);
        let mut file = outfile::extend(path).map_err(io)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(Error::wrong(path, "another experiment writes to it"));
            }
            Err(TryLockError::Error(error)) => return Err(io(error)),
        }
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).map_err(io)?;
        let (runs, whole) = parse(path, &bytes, definition)?;
        file.set_len(whole as u64).map_err(io)?;
        let mut results = Results {
            path: path.to_owned(),
            runs,
            file: Some(file),
        };
        if whole == 0 {
            results.append(&Header::of(definition))?;
        }
        Ok(results)
    }

    /// Reads the file; without a file, the results are empty.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read or belongs to another experiment.
    pub fn read(path: &Path, definition: &Definition) -> Result<Results, Error> {
        let bytes = match fs::read(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
            bytes => bytes.map_err(|source| Error::io(path, source))?,
        };
        let (runs, _) = parse(path, &bytes, definition)?;
        Ok(Results {
            path: path.to_owned(),
            runs,
            file: None,
        })
    }

    /// Returns the runs of a cell.
    pub fn of<'s>(&'s self, cell: &Cell) -> impl Iterator<Item = &'s Run> + use<'s> {
        let key = cell.key();
        self.runs.iter().filter(move |run| run.cell == key)
    }

    /// Returns true if a cell has been measured often enough.
    pub fn is_done(&self, cell: &Cell, repeat: &Repeat) -> bool {
        let bytes: Vec<f64> = self
            .of(cell)
            .map(|r| r.figures.bytes_per_transaction())
            .collect();
        repeat.is_enough(&bytes)
    }

    /// Appends a measurement and syncs it to the disk.
    ///
    /// # Errors
    /// Returns an error if the file cannot be written.
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

    /// Appends what others measured of some cells beyond the runs in this file; they continued these results.
    ///
    /// # Errors
    /// Returns an error if the file cannot be written.
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

/// Returns the runs, and the length in bytes of the whole lines: an incomplete last line is ignored.
fn parse(path: &Path, bytes: &[u8], definition: &Definition) -> Result<(Vec<Run>, usize), Error> {
    let wrong = |why: &str| Error::wrong(path, why);
    let foreign = || wrong("is not a file of an experiment's results");
    let end = bytes.iter().rposition(|byte| *byte == b'\n');
    let (whole, rest) = bytes.split_at(end.map_or(0, |end| end + 1));
    let header = Header::of(definition);
    if whole.is_empty() {
        // A killed process may have left a part of this experiment's header, but nothing else.
        let line = serde_json::to_vec(&header).map_err(|e| wrong(&e.to_string()))?;
        return match line.starts_with(rest) {
            true => Ok((Vec::new(), 0)),
            false => Err(foreign()),
        };
    }
    let text = std::str::from_utf8(whole).map_err(|_| foreign())?;
    let mut lines = text.lines();
    let first = lines.next().unwrap_or_default();
    match serde_json::from_str::<Header>(first) {
        Ok(found) if found == header => {}
        Ok(_) => {
            let why =
                "belongs to another experiment, or what is measured has changed: move it away";
            return Err(wrong(why));
        }
        Err(_) => return Err(foreign()),
    }
    let run = |(at, line): (usize, &str)| {
        serde_json::from_str(line).map_err(|e| wrong(&format!("line {at}: {e}")))
    };
    let runs = (2..).zip(lines).map(run).collect::<Result<_, _>>()?;
    Ok((runs, whole.len()))
}
