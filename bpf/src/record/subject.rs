// SPDX-License-Identifier: MIT OR Apache-2.0
//! The subject of a recording, which is looked up before anything is traced or written.

use std::path::{Path, PathBuf};

use mostrace_bundle::Packages;
use mostrace_bundle::manifest::{Filesystem, Mapping};
use mostrace_bundle::tracepoints::Volume;

use super::Options;
use super::command;
use super::packages;
use crate::error::{Error, Result};
use crate::machine::device::Device;
use crate::machine::filesystem;
use crate::machine::first_page;
use crate::machine::mapper;
use crate::machine::medium::Medium;
use crate::machine::members::{self, Member};
use crate::sink::NameFilter;

/// The device, its filesystem, and the names to keep.
pub(super) struct Subject {
    /// The traced device.
    pub device: Device,
    pub filesystem: Option<Filesystem>,
    /// The device with the filesystem, if that is not simply the traced device.
    pub mapped: Option<Mapped>,
    pub names: NameFilter,
    /// The apps of an Android device.
    pub packages: Option<Packages>,
    /// The disk at the beginning; another one may be in its place at the end.
    pub medium: Medium,
    /// Notes for the user about how these were found.
    pub notes: Vec<String>,
}

/// The device that the filesystem is on: one above the traced one, or the first of several that have the filesystem together.
pub(super) struct Mapped {
    pub device: Device,
    pub mapping: Vec<Mapping>,
    /// The devices that have the filesystem together; empty if it is on one above.
    pub members: Vec<Member>,
}

impl Subject {
    /// Looks up everything that can prevent a capture.
    ///
    /// # Errors
    /// Returns an error if something is missing.
    pub fn find(options: &Options) -> Result<Subject> {
        if !rustix::process::geteuid().is_root() {
            return Err(Error::NoPrivilege(
                "recording needs root (sudo mostrace …)".into(),
            ));
        }
        let names = options.files.clone();
        let named = Device::open(&options.device)?;
        command::check(&options.argv)?;
        let mut notes = Vec::new();
        if named.node() != options.device {
            let (path, node) = (options.device.display(), named.node().display());
            notes.push(format!("{path} is on {node}, which is traced"));
        }
        let (device, mapped) = with_mapped(named, &mut notes)?;
        let mapped = mapped.or_else(|| with_others(&device, &mut notes));
        let mut filesystem = filesystem::find(mapped.as_ref().map_or(&device, |m| &m.device))?;
        if let (Some(filesystem), Some(mapped)) = (&mut filesystem, &mapped) {
            filesystem.device = Some(mapped.device.info.name.clone());
            filesystem.dev = Some(mapped.device.info.dev.clone());
        }
        let packages = packages::find(options.packages.as_deref(), &mut notes)?;
        let of_filesystem = mapped.as_ref().map_or(&device, |m| &m.device);
        let medium = Medium::of(&device, of_filesystem);
        if let Some(filesystem) = &filesystem {
            notes.extend(on_others_too(of_filesystem, filesystem));
            notes.extend(covered(of_filesystem, filesystem));
        }
        let mut subject = Subject {
            medium,
            device,
            filesystem,
            mapped,
            names,
            packages,
            notes,
        };
        subject.prepare();
        if !options.no_snapshot && subject.filesystem.is_none() {
            let note = subject.without_filesystem(&options.device);
            subject.notes.push(note);
        }
        Ok(subject)
    }

    /// Returns the place of the filesystem on the traced disk, if it is mounted.
    pub fn volume(&self) -> Option<Volume> {
        let block_size = rustix::fs::statvfs(self.mount_point()?).ok()?.f_frsize;
        Some(match &self.mapped {
            None => {
                let device = &self.device;
                let sectors = device.info.start_sector..device.end_sector();
                Volume::on(device.dev, sectors, block_size)
            }
            Some(Mapped {
                device,
                mapping,
                members,
            }) => {
                let disk = &self.device.info.disk_dev;
                match members.is_empty() {
                    true => Volume::above(disk, device.dev, mapping, block_size),
                    false => Volume::among(disk, device.dev, mapping, block_size),
                }
            }
        })
    }

    /// Prepares f2fs for the probes before anything is traced: otherwise they cannot tell to which files its nodes belong.
    fn prepare(&self) {
        let node = self.of_filesystem().node();
        if self.filesystem.as_ref().is_some_and(|f| f.kind == "f2fs")
            && let Err(e) = first_page::bring(node)
        {
            log::debug!("{}: {e}", node.display());
        }
    }

    /// Returns the folder at which the filesystem is mounted, if it is.
    pub fn mount_point(&self) -> Option<&Path> {
        let mount = self.filesystem.as_ref()?.mount_point.as_ref()?;
        Some(Path::new(mount))
    }

    /// Returns the mount points of everything on the traced device: of its filesystem, or of its partitions' filesystems.
    pub fn mount_points(&self) -> Vec<PathBuf> {
        if self.filesystem.is_some() {
            return self.mount_point().into_iter().map(Path::to_owned).collect();
        }
        let mounted = |node: PathBuf| {
            let device = Device::open(&node).ok()?;
            Some(filesystem::mounted(&device)?.mount_point?.into())
        };
        let partitions = self.device.partitions().into_iter();
        partitions.filter_map(mounted).collect()
    }

    /// Returns the devices of a filesystem that lies on several; empty for any other.
    pub fn members(&self) -> &[Member] {
        self.mapped.as_ref().map_or(&[], |m| &m.members)
    }

    /// Returns the device that holds the filesystem, or the first of several.
    pub fn of_filesystem(&self) -> &Device {
        self.mapped.as_ref().map_or(&self.device, |m| &m.device)
    }

    /// Returns the note that there is no snapshot, for a device without a known filesystem.
    fn without_filesystem(&self, named: &Path) -> String {
        let partitions = self.device.partitions();
        let partitions: Vec<String> = partitions.iter().map(|node| described(node)).collect();
        let beside = match &partitions[..] {
            [] => String::new(),
            some => format!(" on the whole disk (its partitions: {})", some.join(", ")),
        };
        let named = named.display();
        format!("no snapshot: {named}: no filesystem recognised{beside}")
    }
}

/// Returns the note about a btrfs on several devices of which one is traced.
fn on_others_too(device: &Device, filesystem: &Filesystem) -> Option<String> {
    let others = match filesystem.kind.as_str() {
        "btrfs" => filesystem::other_devices(device),
        _ => Vec::new(),
    };
    let (name, others) = (
        &device.info.name,
        (!others.is_empty()).then(|| others.join(", "))?,
    );
    Some(format!(
        "btrfs lies on {others} too: what is traced is {name} alone"
    ))
}

/// Returns the note about a mounted filesystem to which no path leads.
fn covered(device: &Device, filesystem: &Filesystem) -> Option<String> {
    let is_covered = filesystem.mount_options.is_some() && filesystem.mount_point.is_none();
    let (kind, name) = (&filesystem.kind, &device.info.name);
    is_covered.then(|| {
        format!("other mounts cover the {kind} on {name}: it cannot be synced, and its snapshot may lack what is not written yet")
    })
}

/// Returns the mounted filesystem on the device, if it lies on others too. The other devices of a filesystem that is not mounted are
/// not looked for, because nobody has checked that the devices that it names are its own.
fn with_others(device: &Device, notes: &mut Vec<String>) -> Option<Mapped> {
    let members = match filesystem::mounted(device) {
        None => members::reaching(device),
        Some(_) => members::of(device).unwrap_or_else(|why| {
            notes.push(format!(
                "the filesystem on {} lies on another device too: {why}",
                device.info.name
            ));
            Vec::new()
        }),
    };
    let first = members.first()?.device.clone();
    let others = members.iter().filter(|m| m.device.dev != device.dev);
    let others: Vec<String> = others
        .map(|m| format!("{} ({})", m.device.info.name, m.what))
        .collect();
    notes.push(format!(
        "the filesystem lies on {} too: what is traced is {} alone",
        others.join(", "),
        device.info.name
    ));
    Some(Mapped {
        device: first,
        mapping: members::mapping(&members),
        members,
    })
}

/// Describes a partition and its contents in a few words.
fn described(node: &Path) -> String {
    let found = Device::open(node).and_then(|device| filesystem::find(&device));
    let kind = match found {
        Ok(Some(Filesystem {
            kind, mount_point, ..
        })) => match mount_point {
            Some(mount) => format!(" {kind} at {mount}"),
            None => format!(" {kind}"),
        },
        _ => String::new(),
    };
    format!("{}{kind}", node.display())
}

/// Returns the device to trace, and the mapped device on which to look for a filesystem, if there is one. If a mapped device was
/// named, the one below it is traced, because that is where bios become requests.
fn with_mapped(named: Device, notes: &mut Vec<String>) -> Result<(Device, Option<Mapped>)> {
    if mapper::is_mapped(&named) {
        return match mapper::mapping(&named) {
            Ok(mapping) => {
                let below = mapper::lower(&named, &mapping)?;
                let (upper, lower) = (named.node().display(), below.node().display());
                notes.push(format!("{upper} is mapped onto {lower}, which is traced"));
                let device = named;
                let mapped = Mapped {
                    device,
                    mapping,
                    members: Vec::new(),
                };
                Ok((below, Some(mapped)))
            }
            Err(why @ Error::NotMappable { .. }) => {
                notes.push(why.to_string());
                Ok((named, None))
            }
            Err(why) => Err(why),
        };
    }
    if filesystem::mounted(&named).is_some() {
        return Ok((named, None));
    }
    let mut above = mapper::above(&named);
    above.retain(|device| filesystem::mounted(device).is_some());
    let mapped = match (above.pop(), above.len()) {
        (None, _) => None,
        (Some(device), 0) => match mapper::mapping(&device) {
            Ok(mapping) => Some(Mapped {
                device,
                mapping,
                members: Vec::new(),
            }),
            Err(why) => {
                notes.push(why.to_string());
                None
            }
        },
        (Some(device), _) => {
            above.push(device);
            let nodes: Vec<_> = above.iter().map(|d| d.info.path.clone()).collect();
            notes.push(format!(
                "several mapped devices lie on {}, and none is named by -d: {}",
                named.info.name,
                nodes.join(", ")
            ));
            None
        }
    };
    Ok((named, mapped))
}
