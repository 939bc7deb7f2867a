// SPDX-License-Identifier: MIT OR Apache-2.0
//! The apps of an Android device, by user: kept with the recording, because the kernel knows only users.

use std::fs::File;
use std::io::{ErrorKind, Read, Write};
use std::path::Path;

use mostrace_bundle::packages::{LIMIT, Packages};
use mostrace_bundle::{Folder, layout};

use crate::error::{At, Error, Result};

/// The file in which Android keeps the list.
const OF_ANDROID: &str = "/data/system/packages.list";

/// The list in `named`, or Android's own; None where there is none. What kept that one from being read is a note.
///
/// # Errors
/// `named` cannot be read, or is no such list.
pub(crate) fn find(named: Option<&Path>, notes: &mut Vec<String>) -> Result<Option<Packages>> {
    let Some(named) = named else {
        return Ok(match read(Path::new(OF_ANDROID)) {
            Ok(packages) => Some(packages),
            Err(Error::Io { source, .. }) if source.kind() == ErrorKind::NotFound => None,
            Err(why) => {
                notes.push(format!("users are not known as packages: {why}"));
                None
            }
        });
    };
    let packages = read(named)?;
    match packages.is_empty() {
        true => Err(Error::malformed(
            named.display(),
            "no package in it: a line is NAME UID",
        )),
        false => Ok(Some(packages)),
    }
}

fn read(path: &Path) -> Result<Packages> {
    let mut text = Vec::new();
    let file = File::open(path).at(path)?;
    file.take(LIMIT).read_to_end(&mut text).at(path)?;
    Ok(Packages::parse(&text))
}

/// Writes them into a bundle.
///
/// # Errors
/// The disk is full, or the like.
pub(crate) fn keep(packages: &Packages, folder: &Folder) -> Result<()> {
    let mut file = folder.create(layout::PACKAGES)?;
    file.write_all(&packages.text())
        .at(folder.path().join(layout::PACKAGES))
}
