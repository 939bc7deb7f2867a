// SPDX-License-Identifier: MIT OR Apache-2.0
//! The filesystem that is measured, and a command recorded on it.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use anyhow::Context;
use mostrace_bundle::manifest::Copied;
use mostrace_bundle::{Folder, units};
use mostrace_capture::{
    FreshKind, FreshOptions, Options, Outcome, Progress, Site, User, Workplace, record,
};

/// The options for a fresh filesystem.
#[derive(clap::Args, Clone)]
pub struct FreshArgs {
    /// Further options for mkfs, such as "-b 1024 -O fast_commit"
    #[arg(
        long,
        value_name = "OPTIONS",
        default_value = "",
        allow_hyphen_values = true
    )]
    mkfs: String,
    /// Mount options, as for mount -o
    #[arg(long, value_name = "OPTIONS", default_value = "")]
    mount_options: String,
    /// The size of the filesystem; the image takes only as much room as is written
    #[arg(long, value_name = "SIZE", default_value = "1G", value_parser = units::size)]
    size: u64,
    /// The scheduler of its queue, such as mq-deadline
    #[arg(long, value_name = "NAME")]
    scheduler: Option<String>,
    /// The largest request of its queue in KiB, instead of the kernel's default; with 4, no blocks of 4 KiB are merged
    #[arg(long, value_name = "KIB", value_parser = clap::value_parser!(u32).range(4..))]
    max_sectors_kb: Option<u32>,
}

impl FreshArgs {
    /// Returns the options for a filesystem of this kind.
    pub fn options(&self, kind: FreshKind) -> FreshOptions {
        FreshOptions {
            kind,
            mkfs: self.mkfs.split_whitespace().map(str::to_owned).collect(),
            mount_options: self.mount_options.clone(),
            size: self.size,
            scheduler: self.scheduler.clone(),
            max_sectors_kb: self.max_sectors_kb,
        }
    }

    /// Returns the words of a command line with these options.
    pub fn words(&self) -> Vec<String> {
        let mut words = vec![
            format!("--mkfs={}", self.mkfs),
            format!("--mount-options={}", self.mount_options),
            format!("--size={}M", self.size >> 20),
        ];
        let scheduler = self.scheduler.iter();
        words.extend(scheduler.map(|name| format!("--scheduler={name}")));
        let largest = self.max_sectors_kb.iter();
        words.extend(largest.map(|kib| format!("--max-sectors-kb={kib}")));
        words
    }
}

/// Parses the name of a filesystem.
///
/// # Errors
/// Returns an error if it is not one that can be made.
pub fn kind(text: &str) -> Result<FreshKind, String> {
    Ok(match text {
        "ext4" => FreshKind::Ext4,
        "f2fs" => FreshKind::F2fs,
        "vfat" | "fat32" => FreshKind::Vfat,
        other => return Err(format!("`{other}` is not one of ext4, f2fs, vfat")),
    })
}

/// The most things that are left out of a copy by name.
const MOST_NAMED: usize = 3;

/// Where a command is measured.
pub enum GroundKind {
    /// In this folder, whose filesystem others may use too.
    Folder(PathBuf),
    /// On a fresh filesystem.
    Fresh {
        options: FreshOptions,
        /// In its root folder, instead of a copy of the current one.
        empty: bool,
    },
    /// On a copy of the ext4 in this image.
    #[cfg_attr(not(feature = "tables"), expect(dead_code))]
    Image {
        options: FreshOptions,
        image: PathBuf,
    },
}

/// The directory where the command runs, and the device that is measured. The fields are dropped in this order.
pub struct Ground {
    workplace: Option<Workplace>,
    site: Option<Site>,
    folder: PathBuf,
    device: PathBuf,
}

impl Ground {
    /// Makes the filesystem if one is asked for; its root folder is that user's, or root's.
    ///
    /// # Errors
    /// Returns an error if the filesystem cannot be made, or the folder cannot be read.
    pub fn new(place: &GroundKind, user: Option<&User>) -> anyhow::Result<Ground> {
        let (options, empty, image) = match place {
            GroundKind::Folder(dir) => {
                std::fs::read_dir(dir).with_context(|| format!("--in {}", dir.display()))?;
                // The recorder looks the path up from within that directory.
                let dir = std::path::absolute(dir)?;
                return Ok(Ground {
                    workplace: None,
                    site: None,
                    folder: dir.clone(),
                    device: dir,
                });
            }
            GroundKind::Fresh { options, empty } => (options, *empty, None),
            GroundKind::Image { options, image } => (options, true, Some(image)),
        };
        let site = match image {
            Some(image) => Site::of_image(options, image)?,
            None => Site::new(options, user)?,
        };
        let workplace = match empty {
            true => None,
            false => Some(Workplace::new(&site, user)?),
        };
        let folder = workplace.as_ref().map_or(site.path(), Workplace::path);
        Ok(Ground {
            folder: folder.to_owned(),
            device: site.device().to_owned(),
            workplace,
            site: Some(site),
        })
    }

    /// Returns the directory where the command runs.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Says what of the current folder was copied, if it was.
    pub fn tell_copied(&self) {
        let Some(workplace) = &self.workplace else {
            return;
        };
        let Copied { files, bytes } = workplace.copied();
        let names = workplace.left_out().iter();
        let names: Vec<String> = names
            .take(MOST_NAMED)
            .map(|path| path.display().to_string())
            .collect();
        let without = match workplace.left_out().len() {
            0 => String::new(),
            n if n > MOST_NAMED => format!(
                "; without {} and {} others, which mostrace made",
                names.join(", "),
                n.saturating_sub(MOST_NAMED)
            ),
            _ => format!("; without {}, which mostrace made", names.join(", ")),
        };
        crate::say(&format!(
            "CMD runs in a copy of this folder: {files} files, {}{without}",
            mostrace_trace::text::size(bytes as f64)
        ));
    }

    /// Records a command in that directory into the bundle `output`. `options` has the command, the user and how to record;
    /// the device, the output, the progress and the sync at the end are set here.
    ///
    /// # Errors
    /// Returns an error if the recording fails.
    pub fn record(&self, output: &Held, options: Options) -> anyhow::Result<Outcome> {
        let from = std::env::current_dir()?;
        std::env::set_current_dir(&self.folder)?;
        let outcome = record(&Options {
            device: self.device.clone(),
            output: output.path(),
            sync: true,
            alone: self.site.is_some(),
            copied: self.workplace.as_ref().map(Workplace::copied),
            progress: Progress::Never,
            ..options
        });
        // Otherwise the filesystem would stay in use.
        std::env::set_current_dir(from)?;
        Ok(outcome?)
    }
}

/// The place of a bundle, whose folder is held open from before the filesystem is made: another directory may be mounted over it
/// where the command runs.
pub struct Held {
    parent: Folder,
    name: OsString,
}

impl Held {
    /// Opens the folder of a bundle that is to be written.
    pub fn new(output: &Path) -> anyhow::Result<Held> {
        Ok(Held {
            parent: Folder::open(output.parent().unwrap_or(Path::new("")))?,
            name: output.file_name().unwrap_or_default().to_owned(),
        })
    }

    fn path(&self) -> PathBuf {
        self.parent.handle().join(&self.name)
    }
}
