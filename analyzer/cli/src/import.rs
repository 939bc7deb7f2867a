// SPDX-License-Identifier: MIT OR Apache-2.0
//! `mostrace import`: makes a bundle of what another tool traced.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use anyhow::bail;
use mostrace_bundle::{Folder, Writer, archive};
use mostrace_trace::import::{self, Choice, Format, Imported};

use crate::{shell, usage};

/// Make a recording of another tool's trace: blkparse, ftrace, trace-cmd, Perfetto, MOST, fio, biosnoop, public block traces
///
/// The kind of the files is seen from their bytes. What it cannot tell is unknown in the recording, and a note says so
/// (docs/IMPORT.md).
///
/// Examples:
///   mostrace import trace.txt -o run.most
///   mostrace import trace.txt --device 8:0 -o run.most.tar.zst
///   mostrace import blk.txt --format '%D %5T.%9t %p %a %d %S %n %C' -o run.most
///   mostrace analyze run.most --image disk.img
#[derive(clap::Args)]
#[command(verbatim_doc_comment)]
pub struct Import {
    /// The files, one after the other, all of one kind
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// The bundle to write, NAME.most or NAME.most.tar.zst
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    /// The device, if the trace has several: major:minor, or its name where the trace has names
    #[arg(short, long, value_name = "DEV")]
    device: Option<String>,
    /// The format that blkparse's option -f was given when it printed the files, if that is not its own
    #[arg(short, long, value_name = "FORMAT", value_parser = Format::parse)]
    format: Option<Format>,
}

impl Import {
    /// Runs the command.
    pub fn run(&self) -> anyhow::Result<()> {
        let name = self
            .output
            .file_name()
            .unwrap_or_default()
            .to_string_lossy();
        let folder = name.strip_suffix(".tar.zst").unwrap_or(&name);
        if !folder.ends_with(".most") {
            usage!("{name}: a bundle is named NAME.most or NAME.most.tar.zst");
        }
        if self.output.exists() {
            bail!("{}: exists already", self.output.display());
        }
        let parent = Folder::open(self.output.parent().unwrap_or(Path::new("")))?;
        let writer = Writer::within(parent.make_folder(OsStr::new(folder))?);
        let done = self.import(&writer, folder != name);
        // An archive has it all.
        if done.is_err() || folder != name {
            parent.remove_folder(writer.folder())?;
        }
        self.tell(&done?);
        Ok(())
    }

    fn import(&self, writer: &Writer, is_packed: bool) -> anyhow::Result<Imported> {
        let choice = Choice {
            device: self.device.clone(),
            format: self.format.clone(),
        };
        let imported = import::import(&self.files, &choice, writer)?;
        if is_packed {
            archive::pack(writer.dir(), &self.output)?;
        }
        Ok(imported)
    }

    fn tell(&self, imported: &Imported) {
        let Imported {
            kind,
            device,
            events,
            completed,
            notes,
        } = imported;
        let output = self.output.display();
        crate::say(&format!(
            "{output}: {kind}: {events} events of {device}, {completed} requests"
        ));
        for note in notes {
            log::warn!("{note}");
        }
        let bundle = shell::plain(&output.to_string());
        crate::say(&format!("next: mostrace analyze {bundle}"));
    }
}
