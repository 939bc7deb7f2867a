// SPDX-License-Identifier: MIT OR Apache-2.0
//! The apps of an Android device, by user. They are stored with the recording, because the kernel knows only users.

use std::fs::File;
use std::io::{ErrorKind, Read, Write};
use std::path::Path;

use mostrace_bundle::packages::{LIMIT, Packages};
use mostrace_bundle::{Folder, layout};

use crate::error::{At, Error, Result};

/// The file in which Android keeps the list.
const OF_ANDROID: &str = "/data/system/packages.list";

/// Reads the list in `named`, or Android's own; None if there is none. If Android's own list cannot be read, the reason becomes a
/// note.
///
/// # Errors
/// Returns an error if `named` cannot be read, or is not such a list.
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

/// Writes the apps to a bundle, in place of those that it has.
///
/// # Errors
/// Returns an error if they cannot be written, for example because the disk is full.
pub(crate) fn keep(packages: &Packages, folder: &Folder) -> Result<()> {
    let mut file = folder.replace(layout::PACKAGES)?;
    file.write_all(&packages.text())
        .at(folder.path().join(layout::PACKAGES))
}
