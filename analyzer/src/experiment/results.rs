// SPDX-License-Identifier: MIT OR Apache-2.0
//! The results: a file of JSON lines that only grows.
//!
//! ```text
//! {"experiment":NAME,"identity":TEXT}          which experiment's; see Definition
//! {"cell":KEY,"run":0,"figures":{…}}           one measurement, synced before the next begins
//! ```
//! What a killed process left of a line is cut off, once it is known that the lines before are an experiment's. One process at a time
//! has the file.

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

    /// Reads it; nothing if it is not there.
    ///
    /// # Errors
    /// It cannot be read, or is another experiment's.
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
        repeat.is_enough(&bytes)
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

/// The runs, and the length of the lines that are whole: what a killed process left of one is none.
fn parse(path: &Path, bytes: &[u8], definition: &Definition) -> Result<(Vec<Run>, usize), Error> {
    let wrong = |why: &str| Error::wrong(path, why);
    let foreign = || wrong("is no file of an experiment's results");
    let end = bytes.iter().rposition(|byte| *byte == b'\n');
    let (whole, rest) = bytes.split_at(end.map_or(0, |end| end + 1));
    let header = Header::of(definition);
    if whole.is_empty() {
        // Of no other file a killed process left this.
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
            let why = "is of another experiment, or what is measured has changed: move it away";
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
