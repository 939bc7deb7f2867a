// SPDX-License-Identifier: MIT OR Apache-2.0
//! Images of virtual machines: qemu-img of qemu-utils converts them into a temporary file without a name.

use std::io;
use std::os::fd::AsRawFd;
use std::process::{self, Command, Output};

use crate::fs::error::{Error, Result};
use crate::fs::image::Image;

/// A format that qemu-img reads.
#[derive(Clone, Copy)]
pub struct Format {
    /// What the image is.
    pub name: &'static str,
    /// The format's name for qemu-img.
    qemu: &'static str,
    at: u64,
    magic: &'static [u8],
}

const FORMATS: [Format; 5] = [
    of("a qcow2 image", "qcow2", 0, b"QFI\xfb"),
    of("a VMDK image", "vmdk", 0, b"KDMV"),
    of("a VHD image", "vpc", 0, b"conectix"),
    of("a VHDX image", "vhdx", 0, b"vhdxfile"),
    of("a VDI image", "vdi", 0x40, &[0x7f, 0x10, 0xda, 0xbe]),
];

const fn of(name: &'static str, qemu: &'static str, at: u64, magic: &'static [u8]) -> Format {
    Format {
        name,
        qemu,
        at,
        magic,
    }
}

/// Returns the format of an image, if it is one of these.
pub fn format(image: &Image) -> Option<Format> {
    let is = |format: &Format| {
        let magic = image.read(format.at, format.magic.len(), "first blocks");
        magic.is_ok_and(|magic| magic == format.magic)
    };
    FORMATS.into_iter().find(is)
}

/// Converts an image.
///
/// # Errors
/// Returns an error if qemu-img is not installed or fails, or if the image needs other files, which may be anybody's.
pub fn unpack(image: &Image, format: Format) -> Result<Image> {
    let Format { name, qemu, .. } = format;
    // A path with a colon might name a server.
    let path = image.path().canonicalize();
    let path = path.map_err(|source| Error::open(image.path(), source))?;
    let about = Command::new("qemu-img")
        .args(["info", "--output=json", "-f", qemu])
        .arg(&path)
        .output();
    let about = stdout(image, format, about)?;
    let needs = |what: &str| {
        about
            .windows(what.len())
            .any(|text| text == what.as_bytes())
    };
    if needs("backing-filename") || needs("\"data-file\"") {
        let what = format!(
            "it needs another file: make one of both with qemu-img convert -f {qemu} -O raw"
        );
        return Err(image.unsupported(name, what));
    }
    let file = tempfile::tempfile().map_err(|source| image.io(name, source))?;
    let to = format!("/proc/{}/fd/{}", process::id(), file.as_raw_fd());
    let converted = Command::new("qemu-img")
        .args(["convert", "-f", qemu, "-O", "raw"])
        .arg(&path)
        .arg(to)
        .output();
    stdout(image, format, converted)?;
    let bytes = file
        .metadata()
        .map_err(|source| image.io(name, source))?
        .len();
    Ok(Image::new(image.path(), bytes, file))
}

/// Returns what qemu-img printed.
fn stdout(image: &Image, format: Format, ran: io::Result<Output>) -> Result<Vec<u8>> {
    let Format { name, qemu, .. } = format;
    let out = ran.map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => {
            let what =
                format!("install qemu-utils, or convert it with qemu-img convert -f {qemu} -O raw");
            image.unsupported(name, what)
        }
        _ => image.io("qemu-img", error),
    })?;
    if out.status.success() {
        return Ok(out.stdout);
    }
    let said = String::from_utf8_lossy(&out.stderr);
    let line = said.lines().next().unwrap_or("failed without a message");
    Err(image.corrupt(name, line))
}
