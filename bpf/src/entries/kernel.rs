// SPDX-License-Identifier: MIT OR Apache-2.0
//! The kernel's own recorder, a module or built in: /dev/mostrace, for kernels without BPF.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::rc::Rc;

use mostrace_bundle::Folder;
use rustix::io::Errno;

use super::parameters::Parameters;
use super::stream::Stream;
use super::{Counts, Cut, EntrySource, Tables};
use crate::causes::{self, CauseSource, KernelCauses};
use crate::cut::Ends;
use crate::error::{At, Error, Result, read_line};
use crate::machine::guard::Guard;
use crate::machine::tool;
use crate::names::NameFilter;

const READ_LEN: usize = 1 << 16;

/// Where the recorder is to be found.
#[derive(Clone, Debug)]
pub struct KernelPaths {
    /// The device.
    pub device: PathBuf,
    /// Its settings.
    pub parameters: PathBuf,
    /// Its counters.
    pub class: PathBuf,
}

impl Default for KernelPaths {
    fn default() -> Self {
        KernelPaths {
            device: "/dev/mostrace".into(),
            parameters: "/sys/module/mostrace/parameters".into(),
            class: "/sys/class/misc/mostrace".into(),
        }
    }
}

/// The open device. It records as long as it is open.
pub(crate) struct KernelEntries {
    device: Option<File>,
    // After the device, which has to be closed before: until then no setting can be changed.
    guard: Option<Guard>,
    paths: KernelPaths,
    stream: Stream,
    tables: Tables,
    causes: Option<Rc<RefCell<causes::Tables>>>,
    buffer: Vec<u8>,
    unknown: u64,
    /// The counters as they were at the end.
    lost: Option<BTreeMap<String, u64>>,
    notes: Vec<String>,
}

impl KernelEntries {
    /// Sets the recorder to the device `dev` (MAJ:MIN), and to the causes of `filesystems`, and starts it, into tables in
    /// `folder`.
    ///
    /// # Errors
    /// It is not there, somebody else has it, or what it says is not understood.
    pub fn start(
        paths: &KernelPaths,
        dev: &str,
        filesystems: &[String],
        folder: &Folder,
        names: NameFilter,
        is_cut: bool,
    ) -> Result<KernelEntries> {
        let parameters = free(paths)?;
        let guard = parameters
            .change(dev, filesystems)
            .map_err(|e| explain(e, &paths.device))?;
        let has_causes = parameters.filesystems.is_some() && !filesystems.is_empty();
        let causes = has_causes.then(|| causes::Tables::create(folder, names.clone(), is_cut));
        let causes = causes.transpose()?;
        let nonblock = rustix::fs::OFlags::NONBLOCK.bits().cast_signed();
        let device = OpenOptions::new()
            .read(true)
            .custom_flags(nonblock)
            .open(&paths.device)
            .at(&paths.device)
            .map_err(|e| explain(e, &paths.device))?;
        let mut source = KernelEntries {
            device: Some(device),
            guard: Some(guard),
            paths: paths.clone(),
            stream: Stream::default(),
            tables: Tables::create(folder, names, &paths.device.display().to_string(), is_cut)?,
            causes: causes.map(|tables| Rc::new(RefCell::new(tables))),
            buffer: vec![0; READ_LEN],
            unknown: 0,
            lost: None,
            notes: Vec::new(),
        };
        // The header is there at once: what cannot be read is refused before a command runs.
        source.poll()?;
        Ok(source)
    }

    /// Moves a portion into the tables. Returns whether to ask for another one.
    fn read(&mut self) -> Result<bool> {
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
            match &self.causes {
                Some(causes) if causes::Tables::is_of(entry) => causes.borrow_mut().take(entry)?,
                _ => self.unknown += u64::from(!self.tables.take(entry)?),
            }
        }
        Ok(len > 0)
    }
}

impl EntrySource for KernelEntries {
    fn name(&self) -> &'static str {
        "kernel"
    }

    fn causes(&self) -> Option<Box<dyn CauseSource>> {
        let tables = Rc::clone(self.causes.as_ref()?);
        Some(Box::new(KernelCauses(tables)))
    }

    fn poll(&mut self) -> Result<()> {
        while self.read()? {}
        self.tables.flush()
    }

    fn counts(&self) -> Counts {
        self.tables.counts()
    }

    fn cut(&mut self, at_ns: u64, folder: &Folder, ends: Ends) -> Result<Cut> {
        self.tables.keep_from(at_ns);
        self.poll()?;
        self.tables.cut(folder, ends)
    }

    fn stop(&mut self) -> Result<()> {
        self.poll()?;
        self.stream.end().map_err(|what| wrong(&self.paths, what))?;
        self.lost = Some(self.losses()?);
        drop(self.device.take());
        self.notes.extend(self.guard.take().and_then(Guard::end));
        Ok(())
    }

    fn losses(&self) -> Result<BTreeMap<String, u64>> {
        if let Some(lost) = &self.lost {
            return Ok(lost.clone());
        }
        let mut losses = counters(&self.paths.class.join("losses"))?;
        losses.insert("entries_unknown".to_owned(), self.unknown);
        Ok(losses)
    }

    fn notes(&self) -> Vec<String> {
        self.notes.clone()
    }
}

/// The recorder in a few words, if it can be used.
///
/// # Errors
/// Why it cannot.
pub(crate) fn describe(paths: &KernelPaths) -> Result<String> {
    let now = free(paths)?;
    let causes = match now.filesystems {
        Some(_) => "with causes",
        None => "without causes: an older one",
    };
    Ok(format!(
        "{}, free, {causes}; set to dev={} names={} ring_kb={}",
        paths.device.display(),
        now.dev,
        now.names,
        now.ring_kb
    ))
}

/// Whether there is a recorder, and it records causes.
pub(crate) fn has_causes(paths: &KernelPaths) -> bool {
    Parameters::read(&paths.parameters).is_ok_and(|now| now.filesystems.is_some())
}

/// The settings of a recorder that nobody has.
fn free(paths: &KernelPaths) -> Result<Parameters> {
    if !paths.device.exists() {
        return Err(absent(paths));
    }
    let parameters = Parameters::read(&paths.parameters)?;
    parameters
        .check_free()
        .map_err(|e| explain(e, &paths.device))?;
    Ok(parameters)
}

/// Why there is no device, and what helps. Loading a module is left to its owner.
fn absent(paths: &KernelPaths) -> Error {
    let device = paths.device.clone();
    if paths.class.exists() {
        let number = paths.class.join("dev");
        return Error::NoRecorderNode { device, number };
    }
    let installed = tool::command("modprobe").is_ok_and(|mut modprobe| {
        modprobe
            .args(["--dry-run", "--quiet", "mostrace"])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()
            .is_ok_and(|status| status.success())
    });
    let help = if installed {
        "load it: modprobe mostrace"
    } else {
        "build and load kernel-patches/module"
    };
    Error::NoRecorder { device, help }
}

/// What the recorder means by its refusals.
fn explain(error: Error, device: &Path) -> Error {
    let Error::Io { source, .. } = &error else {
        return error;
    };
    match Errno::from_io_error(source) {
        Some(Errno::BUSY) => Error::Busy {
            what: device.display().to_string(),
            by: "somebody else reads it; the kernel's recorder has one reader".into(),
        },
        Some(Errno::PERM) => Error::NoPrivilege {
            what: format!("{}: opening it takes CAP_SYS_ADMIN", device.display()),
        },
        Some(Errno::NODEV | Errno::NXIO) => Error::RecorderFindsNoDevice {
            device: device.to_owned(),
        },
        _ => error,
    }
}

fn wrong(paths: &KernelPaths, what: String) -> Error {
    Error::malformed(paths.device.display(), what)
}

/// The counters in a folder, by name. A recorder that has none has counted nothing.
fn counters(dir: &Path) -> Result<BTreeMap<String, u64>> {
    let files = match fs::read_dir(dir) {
        Err(e) if e.kind() == ErrorKind::NotFound => return Ok(BTreeMap::new()),
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

#[cfg(test)]
mod tests {
    use std::io::Write;

    use mostrace_bundle::{Bundle, Entry, Manifest, Writer, layout};
    use tempfile::TempDir;

    use super::super::stream::tests::{entry, header};
    use super::*;

    const SETTINGS: [(&str, &str); 4] = [
        ("dev", "sda2"),
        ("names", "a\\nb"),
        ("ring_kb", "1024"),
        ("filesystems", "8:2"),
    ];

    /// A recorder of plain files: its device gives what was put into it.
    struct Fake {
        dir: TempDir,
        paths: KernelPaths,
    }

    impl Fake {
        fn new() -> Fake {
            let dir = tempfile::tempdir().unwrap();
            let at = |name: &str| dir.path().join(name);
            let paths = KernelPaths {
                device: at("device"),
                parameters: at("parameters"),
                class: at("class"),
            };
            fs::create_dir(&paths.parameters).unwrap();
            fs::create_dir_all(paths.class.join("losses")).unwrap();
            for (name, text) in SETTINGS {
                fs::write(paths.parameters.join(name), format!("{text}\n")).unwrap();
            }
            fs::write(paths.class.join("losses/entries_ring"), "3\n").unwrap();
            fs::write(paths.class.join("losses/dirtiers"), "0\n").unwrap();
            fs::write(&paths.device, header(0)).unwrap();
            Fake { dir, paths }
        }

        fn put(&self, bytes: &[u8]) {
            let mut device = File::options()
                .append(true)
                .open(&self.paths.device)
                .unwrap();
            device.write_all(bytes).unwrap();
        }

        fn start(&self) -> Result<KernelEntries> {
            let names = NameFilter::parse("temp").unwrap();
            let folder = Folder::open(self.dir.path()).unwrap();
            KernelEntries::start(&self.paths, "7:0", &["7:0".into()], &folder, names, false)
        }

        fn setting(&self, name: &str) -> String {
            read_line(self.paths.parameters.join(name)).unwrap()
        }

        fn assert_put_back(&self) {
            for (name, text) in SETTINGS {
                assert_eq!(self.setting(name), text, "{name}");
            }
        }

        fn entries(&self, table: &str) -> Vec<Entry> {
            let writer = Writer::create(&self.dir.path().join("x.most")).unwrap();
            let manifest = Manifest {
                schema: 1,
                ..Manifest::default()
            };
            writer.put_manifest(&manifest).unwrap();
            fs::copy(self.dir.path().join(table), writer.path(table)).unwrap();
            let bundle = Bundle::open(writer.dir()).unwrap();
            let entries = bundle.table(table, false).unwrap().unwrap();
            entries.map(|entry| entry.unwrap()).collect()
        }
    }

    fn failure<T>(result: Result<T>) -> String {
        match result {
            Ok(_) => panic!("no error"),
            Err(e) => e.to_string(),
        }
    }

    #[test]
    fn entries_go_into_their_tables_and_settings_back() {
        let fake = Fake::new();
        let mut source = fake.start().unwrap();
        let set = ["dev", "names", "ring_kb", "filesystems"].map(|name| fake.setting(name));
        assert_eq!(set, ["7:0", "all", "4096", "7:0"]);
        let mut dirtier = entry(4, 72);
        dirtier[40] = 7;
        fake.put(&[entry(1, 88), entry(99, 40)].concat());
        source.poll().unwrap();
        // What is there when the recording stops is taken too.
        fake.put(&[entry(2, 72), dirtier, entry(1, 88)].concat());
        source.stop().unwrap();
        fake.assert_put_back();
        let counts = [
            ("process_entries", 2),
            ("file_entries", 1),
            ("dirtier_entries", 1),
            ("freed_entries", 0),
        ];
        assert_eq!(source.counts(), counts);
        let losses = [("dirtiers", 0), ("entries_ring", 3), ("entries_unknown", 1)];
        let losses = losses.map(|(name, lost)| (name.to_owned(), lost));
        assert_eq!(source.losses().unwrap(), BTreeMap::from(losses));
        match fake.entries(layout::DIRTIER)[..] {
            [Entry::Dirtier(d)] => assert_eq!(d.pid.get(), 7),
            ref others => panic!("{others:?}"),
        }
    }

    #[test]
    fn causes_have_tables_of_their_own() {
        let fake = Fake::new();
        let mut source = fake.start().unwrap();
        let mut causes = source.causes().unwrap();
        let mut handle = entry(5, 120);
        let address = std::mem::offset_of!(mostrace_bundle::entry::RawHandle, function);
        handle[address..address + 8].copy_from_slice(&0x1000u64.to_ne_bytes());
        fake.put(
            &[
                handle,
                entry(1, 88),
                entry(6, 48),
                entry(6, 48),
                entry(7, 120),
            ]
            .concat(),
        );
        source.stop().unwrap();
        causes.stop().unwrap();
        assert_eq!(source.counts()[0], ("process_entries", 1));
        assert_eq!(source.losses().unwrap()["entries_unknown"], 0);
        let counts = [
            ("handle_entries", 1),
            ("dirtied_entries", 2),
            ("call_entries", 1),
            ("called_entries", 0),
            ("f2fs_entries", 0),
            ("fork_entries", 0),
        ];
        assert_eq!(causes.counts(), counts);
        match fake.entries(layout::HANDLE)[..] {
            // A number, and no address of the kernel's.
            [Entry::Handle(h)] => assert_eq!(h.function.get(), 0),
            ref others => panic!("{others:?}"),
        }
    }

    #[test]
    fn an_older_recorder_has_no_causes() {
        let fake = Fake::new();
        fs::remove_file(fake.paths.parameters.join("filesystems")).unwrap();
        let mut source = fake.start().unwrap();
        assert!(source.causes().is_none());
        fake.put(&entry(6, 48));
        source.stop().unwrap();
        assert_eq!(source.losses().unwrap()["entries_unknown"], 1);
        assert!(!fake.dir.path().join(layout::HANDLE).exists());
    }

    #[test]
    fn a_larger_ring_is_left_as_it_is() {
        let fake = Fake::new();
        fs::write(fake.paths.parameters.join("ring_kb"), "65536\n").unwrap();
        let _source = fake.start().unwrap();
        assert_eq!(fake.setting("ring_kb"), "65536");
    }

    #[test]
    fn an_older_recorder_counts_less() {
        let fake = Fake::new();
        fs::remove_file(fake.paths.class.join("losses/dirtiers")).unwrap();
        let losses = fake.start().unwrap().losses().unwrap();
        assert!(!losses.contains_key("dirtiers"), "{losses:?}");
        fs::remove_dir_all(&fake.paths.class).unwrap();
        assert_eq!(fake.start().unwrap().losses().unwrap().len(), 1);
    }

    #[test]
    fn a_wrong_stream_is_refused_at_once_and_settings_put_back() {
        let fake = Fake::new();
        fs::write(&fake.paths.device, "something else").unwrap();
        let said = failure(fake.start());
        assert!(said.contains("/device: not the stream of"), "{said}");
        fake.assert_put_back();
    }

    #[test]
    fn a_stream_that_goes_wrong_is_an_error() {
        for (bytes, says) in [
            (entry(1, 96), "/device: malformed entry"),
            (vec![0; 32], "/device: entry at byte 40: bad size 0"),
        ] {
            let fake = Fake::new();
            let mut source = fake.start().unwrap();
            fake.put(&bytes);
            let said = failure(source.poll());
            assert!(said.contains(says), "{said}");
            drop(source);
            fake.assert_put_back();
        }
        let fake = Fake::new();
        let mut source = fake.start().unwrap();
        fake.put(&entry(1, 88)[..50]);
        source.poll().unwrap();
        let said = failure(source.stop());
        assert!(said.contains("cut short in the entry at byte 40"), "{said}");
    }

    /// A pipe has nothing to read for a while, as the device; a plain file never waits.
    #[test]
    fn an_empty_device_is_waited_for_by_polls() {
        let fake = Fake::new();
        fs::remove_file(&fake.paths.device).unwrap();
        let made = std::process::Command::new("mkfifo")
            .arg(&fake.paths.device)
            .status();
        assert!(made.unwrap().success());
        let mut pipe = File::options()
            .read(true)
            .write(true)
            .open(&fake.paths.device)
            .unwrap();
        pipe.write_all(&header(0)[..30]).unwrap();
        let mut source = fake.start().unwrap();
        pipe.write_all(&header(0)[30..]).unwrap();
        source.poll().unwrap();
        pipe.write_all(&entry(1, 88)).unwrap();
        source.stop().unwrap();
        assert_eq!(source.counts()[0], ("process_entries", 1));
    }

    #[test]
    fn without_a_device() {
        let fake = Fake::new();
        fs::remove_file(&fake.paths.device).unwrap();
        let said = failure(fake.start());
        assert!(
            said.contains("though the kernel's recorder is there: mknod it"),
            "{said}"
        );
        fs::remove_dir_all(&fake.paths.class).unwrap();
        let said = failure(fake.start());
        assert!(
            said.contains("the kernel's recorder is not loaded ("),
            "{said}"
        );
        fake.assert_put_back();
    }

    #[test]
    fn refusals_are_explained() {
        let refused = |errno: Errno| {
            let io = Err::<(), _>(std::io::Error::from_raw_os_error(errno.raw_os_error()));
            let error = io.at("/parameters/dev").unwrap_err();
            explain(error, Path::new("/dev/x")).to_string()
        };
        for (errno, says) in [
            (Errno::BUSY, "/dev/x: somebody else reads it"),
            (Errno::PERM, "/dev/x: opening it takes CAP_SYS_ADMIN"),
            (
                Errno::NODEV,
                "/dev/x: the kernel's recorder finds no device",
            ),
            (Errno::NOMEM, "/parameters/dev: Cannot allocate memory"),
        ] {
            let said = refused(errno);
            assert!(said.starts_with(says), "{said}");
        }
    }
}
