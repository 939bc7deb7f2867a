// SPDX-License-Identifier: MIT OR Apache-2.0
//! Records with the kernel's own recorder, a module or built in: /dev/mostrace, for kernels without BPF.

use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use super::process_names::open_entries;
use super::{Losses, Provides, Remark, Source, remarks};
use crate::error::{At, Error, Result, read_line};
use crate::machine::guard::Guard;
use crate::sink::{Sink, is_cause};

mod parameters;
mod paths;
mod stream;
#[cfg(test)]
mod tests;

pub use paths::KernelPaths;
pub(crate) use paths::{describe, has_causes};
use paths::{explain, free};
use stream::Stream;

const READ_LEN: usize = 1 << 16;

/// The open device. It records as long as it is open.
pub(crate) struct Recorder {
    device: Option<File>,
    // This field follows the device, which must be closed first: until then, no setting can be changed.
    guard: Option<Guard>,
    paths: KernelPaths,
    stream: Stream,
    has_causes: bool,
    buffer: Vec<u8>,
    /// The number of entries of a type for which there is no table.
    unknown: u64,
    counters: Counters,
    notes: Vec<String>,
}

/// The counters of the recorder.
enum Counters {
    /// They are read each time they are requested.
    Running,
    /// The recorder did not stop in order.
    Unknown,
    /// They were read when the recorder stopped.
    Final(Losses),
}

impl Recorder {
    /// Configures the recorder for the device `dev` (MAJ:MIN) and for the causes of `filesystems`, starts it, and makes the tables.
    ///
    /// # Errors
    /// Returns an error if the recorder is not there, if somebody else uses it, or if its output is not understood.
    pub fn start(
        paths: &KernelPaths,
        dev: &str,
        filesystems: &[String],
        sink: &mut Sink,
    ) -> Result<Recorder> {
        let parameters = free(paths)?;
        let guard = parameters
            .change(dev, filesystems)
            .map_err(|e| explain(e, &paths.device))?;
        let has_causes = parameters.filesystems.is_some() && !filesystems.is_empty();
        let nonblock = rustix::fs::OFlags::NONBLOCK.bits().cast_signed();
        let device = OpenOptions::new()
            .read(true)
            .custom_flags(nonblock)
            .open(&paths.device)
            .at(&paths.device)
            .map_err(|e| explain(e, &paths.device))?;
        let mut source = Recorder {
            device: Some(device),
            guard: Some(guard),
            paths: paths.clone(),
            stream: Stream::default(),
            has_causes,
            buffer: vec![0; READ_LEN],
            unknown: 0,
            counters: Counters::Running,
            notes: Vec::new(),
        };
        source.begin(sink)?;
        Ok(source)
    }

    /// Makes the tables and reads the header, which is available at once, so that an unreadable one is refused before a command
    /// runs.
    fn begin(&mut self, sink: &mut Sink) -> Result<()> {
        if self.has_causes {
            sink.open_causes(false)?;
        }
        open_entries(sink, &self.paths.device.display().to_string())?;
        let polled = self.poll(sink);
        if polled.is_err() && self.has_causes {
            sink.close_causes();
        }
        polled
    }

    /// Moves a portion to the tables. Returns true if there may be another one.
    fn read(&mut self, sink: &mut Sink) -> Result<bool> {
        let Some(device) = &mut self.device else {
            return Ok(false);
        };
        let len = match device.read(&mut self.buffer) {
            Ok(len) => len,
            Err(e) if e.kind() == ErrorKind::WouldBlock => return Ok(false),
            Err(e) if e.kind() == ErrorKind::Interrupted => return Ok(true),
            Err(e) => return Err(e).at(&self.paths.device),
        };
        self.stream.push(&self.buffer[..len]);
        let wrong = |what| wrong(&self.paths, what);
        while let Some(entry) = self.stream.next_entry().map_err(wrong)? {
            let has_table = match self.has_causes && is_cause(entry) {
                true => sink.push_cause(entry)?,
                false => sink.push_entry(entry)?,
            };
            self.unknown += u64::from(!has_table);
        }
        Ok(len > 0)
    }

    fn stop_device(&mut self, sink: &mut Sink) -> Result<()> {
        self.counters = Counters::Unknown;
        self.poll(sink)?;
        self.stream.end().map_err(|what| wrong(&self.paths, what))?;
        self.counters = Counters::Final(self.read_counters()?);
        drop(self.device.take());
        self.notes.extend(self.guard.take().and_then(Guard::end));
        Ok(())
    }

    fn read_counters(&self) -> Result<Losses> {
        let mut losses = counters(&self.paths.class.join("losses"))?;
        losses.insert("entries_unknown".to_owned(), self.unknown);
        Ok(losses)
    }
}

impl Source for Recorder {
    fn name(&self) -> &'static str {
        "kernel"
    }

    fn provides(&self) -> Provides {
        let causes = Provides::CAUSES.only_if(self.has_causes);
        Provides::ENTRIES | Provides::SEGMENTS | causes
    }

    fn poll(&mut self, sink: &mut Sink) -> Result<()> {
        while self.read(sink)? {}
        Ok(())
    }

    /// Causes come in one stream with entries, and stop with them.
    fn stop(&mut self, what: Provides, sink: &mut Sink) -> Result<()> {
        match what {
            Provides::ENTRIES => self.stop_device(sink),
            _ => Ok(()),
        }
    }

    fn losses(&self) -> Result<Losses> {
        match &self.counters {
            Counters::Running => self.read_counters(),
            Counters::Unknown => Ok(Losses::new()),
            Counters::Final(losses) => Ok(losses.clone()),
        }
    }

    fn remarks(&self) -> Vec<Remark> {
        let limits = self.has_causes.then(|| ONLY_FIRST.to_owned());
        let limits = Vec::from_iter(limits);
        let limits = remarks(&limits, Remark::Limit);
        limits.chain(remarks(&self.notes, Remark::Note)).collect()
    }
}

/// What the recorder does not report about causes.
const ONLY_FIRST: &str = "the kernel's recorder tells of the first change of a block in a transaction, so a block in the journal has \
                          that change's cause (`first`); later changes are not seen";

fn wrong(paths: &KernelPaths, what: String) -> Error {
    Error::malformed(paths.device.display(), what)
}

/// Reads the counters in a folder, by name. A recorder without the folder has counted nothing.
fn counters(dir: &Path) -> Result<Losses> {
    let files = match fs::read_dir(dir) {
        Err(e) if e.kind() == ErrorKind::NotFound => return Ok(Losses::new()),
        files => files.at(dir)?,
    };
    files
        .map(|file| {
            let file = file.at(dir)?;
            let path = file.path();
            let text = read_line(&path)?;
            let count = text
                .parse()
                .map_err(|e| Error::malformed(path.display(), e))?;
            Ok((file.file_name().to_string_lossy().into_owned(), count))
        })
        .collect()
}
