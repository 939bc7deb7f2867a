// SPDX-License-Identifier: MIT OR Apache-2.0
//! The file in which the command's workload reports what it stored.

use std::fs::{self, Permissions};
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use mostrace_bundle::Folder;
use mostrace_bundle::manifest::Payload;
use mostrace_bundle::temporary::TempFolder;

use crate::error::{At, Error, Result};
use crate::machine::user::User;

const NAME: &str = "payload.json";
/// The most bytes of a payload; it takes a few hundred.
const LIMIT: u64 = 1 << 20;

/// A folder of the command's user, within a folder of the recorder's. Its contents are read as somebody else's data.
pub(crate) struct PayloadPlace {
    folder: Folder,
    _outer: TempFolder,
}

impl PayloadPlace {
    /// Makes the folder, for the command's user if that is not the recorder's.
    ///
    /// # Errors
    /// Returns an error if no temporary folder can be made.
    pub fn new(user: Option<&User>) -> Result<PayloadPlace> {
        let outer = TempFolder::new()?;
        let folder = Folder::open(outer.path())?.make_folder("payload".as_ref())?;
        if let Some(user) = user {
            folder.give_to(Some(user.owner))?;
            // Others may pass through it, and no more.
            fs::set_permissions(outer.path(), Permissions::from_mode(0o711)).at(outer.path())?;
        }
        Ok(PayloadPlace {
            folder,
            _outer: outer,
        })
    }

    /// Returns the path that is given to the workload.
    pub fn path(&self) -> PathBuf {
        self.folder.path().join(NAME)
    }

    /// Reads what was stored there, if anything was; the payloads of several workloads are added up.
    ///
    /// # Errors
    /// Returns an error if the file is malformed.
    pub fn read(&self) -> Result<Option<Payload>> {
        if !self.folder.has(NAME)? {
            return Ok(None);
        }
        let malformed = |why: String| Error::malformed(self.path().display(), why);
        let file = self.folder.read(NAME)?;
        let meta = file.metadata().at(self.path())?;
        if meta.len() > LIMIT {
            return Err(malformed(format!("longer than {LIMIT} bytes")));
        }
        let mut text = Vec::new();
        file.take(LIMIT).read_to_end(&mut text).at(self.path())?;
        let payloads = serde_json::Deserializer::from_slice(&text).into_iter::<Payload>();
        let all: serde_json::Result<Vec<Payload>> = payloads.collect();
        let all = all.map_err(|e| {
            // Name only the place: the words may be the command's own.
            malformed(format!(
                "not a payload's JSON, line {}, column {}",
                e.line(),
                e.column()
            ))
        })?;
        Ok(all.into_iter().reduce(|sum, more| sum.and(&more)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn a_payload_is_read_and_a_link_is_not() {
        let place = PayloadPlace::new(None).unwrap();
        assert_eq!(place.read().unwrap(), None);
        let payload = Payload {
            payload_bytes: 7,
            ..Payload::default()
        };
        let elsewhere = tempfile::NamedTempFile::new().unwrap();
        fs::write(elsewhere.path(), serde_json::to_vec(&payload).unwrap()).unwrap();
        symlink(elsewhere.path(), place.path()).unwrap();
        assert!(place.read().is_err());
        fs::rename(elsewhere.path(), place.path()).unwrap();
        assert_eq!(place.read().unwrap(), Some(payload));
    }

    /// These are the fields that the page for authors describes.
    #[test]
    fn three_fields_are_enough() {
        let place = PayloadPlace::new(None).unwrap();
        let told =
            r#"{"workload": "my-app", "transactions": 200, "payload_bytes": 21600, "other": []}"#;
        fs::write(place.path(), told).unwrap();
        let payload = place.read().unwrap().unwrap();
        assert_eq!((payload.transactions, payload.payload_bytes), (200, 21600));
    }

    #[test]
    fn payloads_of_several_workloads_are_added_up() {
        let place = PayloadPlace::new(None).unwrap();
        let payload = |bytes| Payload {
            workload: "mine".into(),
            payload_bytes: bytes,
            ..Payload::default()
        };
        let both = [payload(7), payload(9)].map(|p| serde_json::to_string(&p).unwrap());
        fs::write(place.path(), both.join("\n")).unwrap();
        assert_eq!(place.read().unwrap(), Some(payload(16)));
        fs::write(place.path(), " \n").unwrap();
        assert_eq!(place.read().unwrap(), None);
    }

    #[test]
    fn whatever_is_put_there_is_a_payload_or_one_short_line() {
        let place = PayloadPlace::new(None).unwrap();
        let path = place.path();
        let said = || place.read().unwrap_err().to_string();
        let words = format!("{{\"transactions\": \"{}\"}}", "words".repeat(1000));
        fs::write(&path, words).unwrap();
        let line = said();
        let says = "payload.json: not a payload's JSON, line 1, column 5019";
        assert!(line.ends_with(says), "{line}");
        fs::File::create(&path).unwrap().set_len(1 << 40).unwrap();
        assert!(said().ends_with("payload.json: longer than 1048576 bytes"));
        fs::remove_file(&path).unwrap();
        fs::create_dir(&path).unwrap();
        assert!(said().ends_with("payload.json: is not a regular file"));
        fs::remove_dir(&path).unwrap();
        rustix::fs::mkfifoat(rustix::fs::CWD, &path, rustix::fs::Mode::RWXU).unwrap();
        assert!(said().ends_with("payload.json: is not a regular file"));
    }
}
