// SPDX-License-Identifier: MIT OR Apache-2.0
//! Anonymous names: equal names stay equal, and a file's role in SQLite stays visible.

use mostrace_bundle::entry::stack::Place;

use super::Facts;

/// Hexadecimal digits of a name.
const DIGITS: usize = 12;
/// The suffixes that SQLite appends to a database's name.
const APPENDED: [&[u8]; 3] = [b"-journal", b"-wal", b"-shm"];
/// The file extensions that are kept, in lower case: they say what a file holds but not whose it is.
const EXTENSIONS: &str = "\
    7z a aac apex apk art avi bak bash bin bmp bz2 c cache cc cfg class conf cpp css csv dat db \
    db3 deb dex dmp doc docx dump epub exe flac flv gif gz h heic heif hpp htm html idx img ini \
    iso jar java jpeg jpg js json jsonl ko ldb lock log lz4 m4a m4v md mdb mkv mov mp3 mp4 mpg o \
    oat obb odex ods odt ogg old opus parquet pb pdf php pid pkl pma png ppt pptx proto py pyc \
    rs rtf sh so sock sql sqlite sqlite3 sst svg swp tar tgz tif tiff tmp toml ts tsv txt vdex \
    wav webm webp xml xz zip";

/// The key that names are hashed with.
pub type Key = [u8; 32];

impl Facts {
    /// Replaces the names of processes, apps and path components, and the places in programs' code, by their keyed hash (BLAKE3). The last component keeps a
    /// known extension and a suffix that SQLite appends to a database's name. Without the key, nobody can test guesses of
    /// names.
    pub fn anonymize(&mut self, key: &Key) {
        self.hidden = Some(*key);
        for process in &mut self.origins.names.processes {
            process.comm = process.comm.as_deref().map(|comm| hashed(key, comm));
            process.process_comm = process
                .process_comm
                .as_deref()
                .map(|comm| hashed(key, comm));
            process.cgroup = process.cgroup.as_deref().map(|path| path_of(key, path));
        }
        for file in &mut self.origins.names.files {
            for path in [&mut file.path, &mut file.final_path] {
                *path = path.as_deref().map(|path| path_of(key, path));
            }
        }
        self.stacks.take();
        let places = self.origins.names.stacks.iter_mut();
        for place in places.flat_map(|stack| &mut stack.user) {
            *place = Place {
                path: hashed(key, &place.line()),
                ..Place::default()
            };
        }
        for origin in &mut self.origins.list {
            let packages = origin.packages.take();
            origin.packages = packages.map(|packages| packages.renamed(|name| hashed(key, name)));
            let name = hashed(key, origin.name.as_bytes());
            origin.name = String::from_utf8_lossy(&name).into_owned();
        }
    }
}

impl Facts {
    /// Returns the name of a process that may be shown: its hash if names are [hidden](Self::anonymize).
    pub(crate) fn shown(&self, comm: &[u8]) -> Box<[u8]> {
        match &self.hidden {
            Some(key) if !comm.is_empty() => hashed(key, comm),
            _ => comm.into(),
        }
    }
}

/// Hashes the names in operations so that they still name the same files: in a replay a folder and the last component of a path
/// must have one name wherever they stand.
pub(crate) struct Texts<'k> {
    key: &'k Key,
}

/// The namespaces of extended attributes whose names are the kernel's or the system's own (xattr(7)).
const SYSTEM_ATTRIBUTES: [&[u8]; 2] = [b"security.", b"system."];

impl Texts<'_> {
    pub(crate) fn new(key: &Key) -> Texts<'_> {
        Texts { key }
    }

    /// Hashes each component of a path, or of a symbolic link's target.
    pub(crate) fn path(&self, path: &[u8]) -> Vec<u8> {
        let component = |name: &[u8]| match name {
            b"" | b"." | b".." => name.into(),
            _ => name_of(self.key, name),
        };
        let components: Vec<Box<[u8]>> = path.split(|&b| b == b'/').map(component).collect();
        components.join(&b'/')
    }

    /// Hashes the name of an extended attribute; its namespace stays.
    pub(crate) fn attribute(&self, name: &[u8]) -> Vec<u8> {
        if SYSTEM_ATTRIBUTES
            .iter()
            .any(|space| name.starts_with(space))
        {
            return name.to_vec();
        }
        let mut parts = name.split_inclusive(|&b| b == b'.');
        let space = parts.next().filter(|space| space.ends_with(b"."));
        let space = space.unwrap_or_default();
        let name = name.strip_prefix(space).unwrap_or(name);
        [space, &hashed(self.key, name)].concat()
    }
}

pub(crate) fn path_of(key: &Key, path: &[u8]) -> Box<[u8]> {
    let mut components: Vec<&[u8]> = path.split(|&b| b == b'/').collect();
    let last = components.pop().unwrap_or_default();
    let folder = |name: &[u8]| match name {
        [] => name.into(),
        _ => hashed(key, name),
    };
    let mut hidden: Vec<Box<[u8]>> = components.into_iter().map(folder).collect();
    hidden.push(name_of(key, last));
    hidden.join(&b'/').into()
}

/// Hashes the last component of a path.
fn name_of(key: &Key, name: &[u8]) -> Box<[u8]> {
    if name.is_empty() {
        return name.into();
    }
    let without = |end: &[u8]| name.strip_suffix(end).filter(|base| !base.is_empty());
    let (base, appended) = APPENDED
        .iter()
        .find_map(|end| Some((without(end)?, *end)))
        .unwrap_or((name, &[]));
    let (stem, extension) = split_extension(base);
    [&hashed(key, stem), extension, appended].concat().into()
}

/// Splits a name at its last dot if a known extension follows and something precedes it.
fn split_extension(name: &[u8]) -> (&[u8], &[u8]) {
    let Some(dot) = name.iter().rposition(|&b| b == b'.').filter(|&at| at > 0) else {
        return (name, &[]);
    };
    let (stem, extension) = name.split_at(dot);
    let mut known = EXTENSIONS.split_whitespace();
    match known.any(|known| extension[1..].eq_ignore_ascii_case(known.as_bytes())) {
        true => (stem, extension),
        false => (name, &[]),
    }
}

/// Hashes a whole name, such as a process's.
pub(crate) fn hashed(key: &Key, name: &[u8]) -> Box<[u8]> {
    let hash = blake3::keyed_hash(key, name).to_hex();
    hash.as_bytes()[..DIGITS].into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_has_one_name_wherever_it_stands() {
        let texts = Texts { key: &[7; 32] };
        let [folder, file] =
            [&b"bank.db"[..], b"bank.db/my-letter.txt"].map(|path| texts.path(path));
        let inside = file.strip_prefix(&folder[..]).unwrap();
        assert!(inside.starts_with(b"/") && inside.ends_with(b".txt"));
        // A relative target leads to the same place.
        let target = texts.path(b"../bank.db/./my-letter.txt");
        assert_eq!(target, [b"../", &folder[..], b"/.", inside].concat());
        assert_eq!(texts.path(b""), b"");
        let shown = String::from_utf8([folder, file].concat()).unwrap();
        assert!(!shown.contains("bank") && !shown.contains("letter"));
    }

    #[test]
    fn attributes_keep_their_namespace() {
        let texts = Texts { key: &[7; 32] };
        assert_eq!(texts.attribute(b"security.selinux"), b"security.selinux");
        let hidden = texts.attribute(b"user.my.secret");
        assert!(hidden.starts_with(b"user.") && hidden.len() == b"user.".len() + DIGITS);
        assert_eq!(texts.attribute(b"secret").len(), DIGITS);
    }

    #[test]
    fn a_database_and_its_journal_stay_together() {
        let key = [7; 32];
        let hidden = |path: &str| String::from_utf8(path_of(&key, path.as_bytes()).into()).unwrap();
        let database = hidden("/data/secret.db");
        assert_eq!(
            hidden("/data/secret.db-journal"),
            format!("{database}-journal")
        );
        assert_eq!(hidden("/data/secret.db-wal"), format!("{database}-wal"));
        assert!(
            database.starts_with('/') && database.ends_with(".db"),
            "{database}"
        );
        assert!(
            !database.contains("data") && !database.contains("secret"),
            "{database}"
        );
        assert_eq!(database.split('/').count(), 3);
        // Another key yields another name; a long extension may reveal something.
        assert_ne!(
            path_of(&[8; 32], b"/data/secret.db"),
            database.as_bytes().into()
        );
        for (path, word) in [
            ("/letter.to-my-bank", "bank"),
            ("/letter.bank", "bank"),
            ("/data/com.whatsapp", "whatsapp"),
            ("/data/com.whatsapp/msgstore.db", "whatsapp"),
            ("/mail/x@gmail.com", "com"),
            ("/mail/x@gmail.com/a.db", "gmail"),
            ("/music.db/a", ".db"),
            ("x@gmail.com-journal", "com"),
        ] {
            let hidden = hidden(path);
            assert!(!hidden.contains(word), "{path} is {hidden}");
        }
        assert!(hidden("/IMG_1.JPG").ends_with(".JPG"));
        assert_eq!(hidden("/"), "/");
    }
}
