// SPDX-License-Identifier: MIT OR Apache-2.0
//! A script of MobiGen's, the system calls of an application, replayed.
//!
//! ```text
//! script = { line "\n" }
//! line   = thread " " microseconds " " call { " " argument }        (microseconds: since the script's begin)
//! call   = "open"      path flags descriptor      flags as O_RDWR|O_CREAT; path in quotes, or a word for a file of its own
//!        | "close"     descriptor                 descriptor: as it was called in the application
//!        | "write" | "read"      descriptor bytes
//!        | "pwrite" | "pread"    descriptor offset bytes
//!        | "fsync" | "fdatasync" | "fstat" | "fstat64"    descriptor
//!        | "access" | "stat" | "stat64" | "lstat" | "lstat64" | "unlink"    path in quotes
//! ```
//! So it is in the scripts that Mobibench comes with; further arguments, as what the call returned, are passed over.
//!
//! Mobibench works on the paths themselves, as root. Here every path is one below the given folder, and folders are made
//! there as they are needed: a script of somebody else's harms nothing.

use std::collections::{BTreeMap, HashMap};
use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::FileExt;
use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::measure::{Progress, in_threads, timed};
use crate::outcome::{Outcome, Task};
use crate::{Error, Result};

/// What is replayed, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MobigenSettings {
    /// The script.
    pub script: PathBuf,
    /// The folder that stands for `/`.
    pub path: PathBuf,
    /// Wait until a call's time has come; without, each thread goes on at once.
    pub timing: bool,
}

/// One line.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Line {
    thread: u32,
    at: Duration,
    call: Call,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Call {
    Open {
        path: String,
        writes: bool,
        descriptor: i64,
    },
    Close(i64),
    Write {
        descriptor: i64,
        offset: Option<u64>,
        bytes: usize,
    },
    Read {
        descriptor: i64,
        offset: Option<u64>,
        bytes: usize,
    },
    Fsync(i64),
    Fdatasync(i64),
    Fstat(i64),
    Look {
        path: String,
        follow: bool,
    },
    Unlink(String),
}

impl Line {
    fn parse(line: &str) -> std::result::Result<Self, String> {
        let mut words = line.split_whitespace();
        let mut word = |what: &str| words.next().ok_or_else(|| format!("{what} is missing"));
        let thread = number(word("the thread")?)?;
        let at = Duration::from_micros(number(word("the time")?)?);
        let name = word("the call")?;
        let call = match name {
            "open" => Call::Open {
                path: word("the path")?.to_owned(),
                writes: !word("the flags")?.starts_with("O_RDONLY"),
                descriptor: number(word("the descriptor")?)?,
            },
            "close" => Call::Close(number(word("the descriptor")?)?),
            "write" | "pwrite" | "read" | "pread" => {
                let descriptor = number(word("the descriptor")?)?;
                let offset = match name.starts_with('p') {
                    true => Some(number(word("the offset")?)?),
                    false => None,
                };
                let bytes = number(word("the bytes")?)?;
                match name.ends_with("write") {
                    true => Call::Write {
                        descriptor,
                        offset,
                        bytes,
                    },
                    false => Call::Read {
                        descriptor,
                        offset,
                        bytes,
                    },
                }
            }
            "fsync" => Call::Fsync(number(word("the descriptor")?)?),
            "fdatasync" => Call::Fdatasync(number(word("the descriptor")?)?),
            "fstat" | "fstat64" => Call::Fstat(number(word("the descriptor")?)?),
            "access" | "stat" | "stat64" | "lstat" | "lstat64" => Call::Look {
                path: word("the path")?.to_owned(),
                follow: !name.starts_with('l'),
            },
            "unlink" => Call::Unlink(word("the path")?.to_owned()),
            other => return Err(format!("`{other}` is no call that can be replayed")),
        };
        Ok(Self { thread, at, call })
    }
}

fn number<T: std::str::FromStr>(word: &str) -> std::result::Result<T, String> {
    word.parse()
        .map_err(|_| format!("`{word}` is no such number"))
}

/// Longer reads and writes are none that a phone's application makes.
const MOST_BYTES: usize = 1 << 26;

fn parse(script: &Path, text: &str) -> Result<Vec<Line>> {
    let lines = (1_u64..)
        .zip(text.lines())
        .filter(|(_, line)| !line.trim().is_empty());
    let parsed = lines.map(|(at, line)| {
        let line = Line::parse(line).and_then(|line| match line.call {
            Call::Write { bytes, .. } | Call::Read { bytes, .. } if bytes > MOST_BYTES => {
                Err(format!("{bytes} bytes are more than a call is given"))
            }
            _ => Ok(line),
        });
        line.map_err(|why| Error::Line {
            path: script.to_owned(),
            line: at,
            why,
        })
    });
    parsed.collect()
}

/// Replays it, each of its threads in one of its own; `progress` counts lines. A call that fails, as one of a file that was
/// there before the script was taken, is passed over and counted.
///
/// # Errors
/// The script cannot be read, or has a line that is none.
pub fn run_mobigen(settings: &MobigenSettings, progress: &Progress) -> Result<Outcome> {
    let (setup, threads) = timed(|| {
        let text = fs::read_to_string(&settings.script).map_err(Error::io(&settings.script))?;
        fs::create_dir_all(&settings.path).map_err(Error::io(&settings.path))?;
        let mut threads: BTreeMap<u32, Vec<Line>> = BTreeMap::new();
        for line in parse(&settings.script, &text)? {
            threads.entry(line.thread).or_default().push(line);
        }
        Ok(threads)
    })?;
    let count = threads.values().map(Vec::len).sum::<usize>();
    let files = Files::new(&settings.path);
    let workers = threads.into_iter().map(|(thread, lines)| Player {
        thread,
        lines,
        opened: 0,
        failed: 0,
        buffer: Vec::new(),
    });
    let began = Instant::now();
    let (players, measured) = in_threads(workers.collect(), progress, |player, stopwatch| {
        for line in std::mem::take(&mut player.lines) {
            if settings.timing {
                std::thread::sleep(line.at.saturating_sub(began.elapsed()));
            }
            stopwatch.time(|| {
                player.play(&line.call, &files);
                Ok(())
            })?;
        }
        Ok(())
    })?;
    let failed: u64 = players.iter().map(|player| player.failed).sum();
    let (finish, ()) = timed(|| {
        drop(files);
        Ok(())
    })?;
    let script = settings.script.display();
    let task = Task {
        workload: "mobigen",
        heading: format!("{script}: {count} calls, of which {failed} failed"),
        payload_bytes: measured.phase.written.map_or(0, |written| written.bytes),
        count: u64::try_from(count).unwrap_or(u64::MAX),
        settings: BTreeMap::from([
            ("script".to_owned(), script.to_string()),
            ("path".to_owned(), settings.path.display().to_string()),
            ("timing".to_owned(), settings.timing.to_string()),
            ("failed".to_owned(), failed.to_string()),
        ]),
    };
    Ok(Outcome::new(task, [setup, finish], measured))
}

/// The files that are open, for all threads: a process has one table of descriptors.
struct Files {
    root: PathBuf,
    open: Mutex<HashMap<i64, Arc<Mutex<File>>>>,
}

impl Files {
    fn new(root: &Path) -> Self {
        Self {
            root: root.to_owned(),
            open: Mutex::default(),
        }
    }

    /// A path of the script's below the folder: `..` leads nowhere.
    fn below(&self, path: &str) -> PathBuf {
        let path = Path::new(path.trim_matches('"'));
        let names = path.components().filter_map(|part| match part {
            Component::Normal(name) => Some(name),
            _ => None,
        });
        self.root.join(names.collect::<PathBuf>())
    }

    fn get(&self, descriptor: i64) -> io::Result<Arc<Mutex<File>>> {
        let open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.get(&descriptor)
            .cloned()
            .ok_or_else(|| ErrorKind::NotFound.into())
    }

    fn put(&self, descriptor: i64, file: File) {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.insert(descriptor, Arc::new(Mutex::new(file)));
    }

    fn take(&self, descriptor: i64) -> io::Result<()> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.remove(&descriptor)
            .map(drop)
            .ok_or_else(|| ErrorKind::NotFound.into())
    }
}

/// One thread of the script's.
struct Player {
    thread: u32,
    lines: Vec<Line>,
    opened: u64,
    failed: u64,
    buffer: Vec<u8>,
}

impl Player {
    fn play(&mut self, call: &Call, files: &Files) {
        if self.try_to(call, files).is_err() {
            self.failed = self.failed.saturating_add(1);
        }
    }

    fn try_to(&mut self, call: &Call, files: &Files) -> io::Result<()> {
        use std::io::{Read, Write};
        let locked = |descriptor| files.get(descriptor);
        match call {
            Call::Open {
                path,
                writes,
                descriptor,
            } => {
                // What the application could not open is not opened.
                if *descriptor < 0 {
                    return Err(ErrorKind::NotFound.into());
                }
                let path = self.place(path, files);
                files.put(*descriptor, open(&path, *writes)?);
            }
            Call::Close(descriptor) => files.take(*descriptor)?,
            Call::Write {
                descriptor,
                offset,
                bytes,
            } => {
                let file = locked(*descriptor)?;
                let mut file = file.lock().unwrap_or_else(PoisonError::into_inner);
                let data = self.bytes(*bytes);
                match offset {
                    Some(offset) => file.write_all_at(data, *offset)?,
                    None => file.write_all(data)?,
                }
            }
            Call::Read {
                descriptor,
                offset,
                bytes,
            } => {
                let file = locked(*descriptor)?;
                let mut file = file.lock().unwrap_or_else(PoisonError::into_inner);
                let data = self.bytes(*bytes);
                match offset {
                    Some(offset) => file.read_at(data, *offset)?,
                    None => file.read(data)?,
                };
            }
            Call::Fsync(descriptor) => sync(&locked(*descriptor)?, File::sync_all)?,
            Call::Fdatasync(descriptor) => sync(&locked(*descriptor)?, File::sync_data)?,
            Call::Fstat(descriptor) => {
                sync(&locked(*descriptor)?, |file| file.metadata().map(drop))?
            }
            Call::Look { path, follow } => {
                let path = files.below(path);
                match follow {
                    true => fs::metadata(path)?,
                    false => fs::symlink_metadata(path)?,
                };
            }
            Call::Unlink(path) => fs::remove_file(files.below(path))?,
        }
        Ok(())
    }

    /// Where a file is: a word without quotes stands for a new one of the thread's.
    fn place(&mut self, path: &str, files: &Files) -> PathBuf {
        if path.starts_with('"') {
            return files.below(path);
        }
        let number = self.opened;
        self.opened = self.opened.saturating_add(1);
        files
            .root
            .join(format!("temp_{}_{number}.dat", self.thread))
    }

    fn bytes(&mut self, bytes: usize) -> &mut [u8] {
        if self.buffer.len() < bytes {
            self.buffer.resize(bytes, 0xa5);
        }
        self.buffer.get_mut(..bytes).unwrap_or_default()
    }
}

fn sync(file: &Arc<Mutex<File>>, act: impl Fn(&File) -> io::Result<()>) -> io::Result<()> {
    act(&file.lock().unwrap_or_else(PoisonError::into_inner))
}

/// For writing it is made, or emptied, as Mobibench does whatever the flags.
fn open(path: &Path, writes: bool) -> io::Result<File> {
    if !writes {
        return File::open(path);
    }
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(true)
        .open(path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_line_of_each_kind() {
        let call = |line: &str| Line::parse(line).unwrap().call;
        let open = Call::Open {
            path: "\"/a/b\"".into(),
            writes: true,
            descriptor: 36,
        };
        assert_eq!(call("1 0 open \"/a/b\" O_RDWR|O_CREAT 36"), open);
        let pread = Call::Read {
            descriptor: 7,
            offset: Some(24),
            bytes: 16,
        };
        assert_eq!(call("2 1000 pread 7 24 16"), pread);
        assert_eq!(call("2 1000 fstat64 72 0"), Call::Fstat(72));
        let line = Line::parse("3 1500 fsync 9").unwrap();
        assert_eq!((line.thread, line.at), (3, Duration::from_micros(1500)));
    }

    #[test]
    fn what_is_no_line_is_named() {
        let wrong = |text: &str| parse(Path::new("s"), text).unwrap_err().to_string();
        assert_eq!(
            wrong("1 0 fsync 3\n1 0 rename \"/a\" \"/b\"\n"),
            "s:2: `rename` is no call that can be replayed"
        );
        assert_eq!(wrong("1 0 write 3\n"), "s:1: the bytes is missing");
        assert_eq!(wrong("1 x"), "s:1: `x` is no such number");
    }

    #[test]
    fn no_path_leads_out_of_the_folder() {
        let files = Files::new(Path::new("/x"));
        assert_eq!(
            files.below("\"/data/../../etc/passwd\""),
            Path::new("/x/data/etc/passwd")
        );
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in "([0-9]{1,3} [0-9]{1,5} (open|pwrite|close|stat) [ -~]{0,20}\n){0,4}|[ -~\n]{0,60}") {
            let lines = text.lines().filter(|line| !line.trim().is_empty()).count();
            if let Ok(parsed) = parse(Path::new("s"), &text) {
                prop_assert_eq!(parsed.len(), lines);
            }
        }
    }
}
