// SPDX-License-Identifier: MIT OR Apache-2.0
//! The hour that is not over: the keeper of a ledger hands it over at a socket in the ledger's folder. Nothing is done until somebody
//! asks.

use std::io::{Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

use anyhow::Context;
use mostrace_bundle::Folder;
use mostrace_tables::ledger::{LONGEST, RUNNING, Running};

/// How long either side waits for the other.
const PATIENCE: Duration = Duration::from_secs(5);

/// The socket, there for as long as this lives.
pub struct Socket {
    folder: Folder,
}

impl Drop for Socket {
    fn drop(&mut self) {
        // The next keeper replaces one that stays.
        let _ = self.folder.remove(RUNNING);
    }
}

/// Hands the running hour to everybody who asks. Only the keeper's user can.
pub fn offer(folder: &Folder, running: Running) -> anyhow::Result<Socket> {
    let shown = || folder.path().join(RUNNING).display().to_string();
    if folder.has(RUNNING)? {
        folder.remove(RUNNING)?;
    }
    let listener = UnixListener::bind(place(folder)).with_context(shown)?;
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            if let Err(why) = answer(stream, &running) {
                log::info!("{RUNNING}: {why}");
            }
        }
    });
    Ok(Socket {
        folder: folder.clone(),
    })
}

fn answer(mut stream: UnixStream, running: &Running) -> anyhow::Result<()> {
    stream.set_write_timeout(Some(PATIENCE))?;
    Ok(stream.write_all(&running.bytes()?)?)
}

/// Asks the keeper of a ledger for the running hour. None if nobody keeps it, or if the keeper does not answer this user.
pub fn ask(folder: &Folder) -> Option<Vec<u8>> {
    let place = place(folder);
    let (tell, told) = channel();
    // A stranger's socket may never accept.
    thread::spawn(move || tell.send(asked(place)));
    told.recv_timeout(PATIENCE).ok()?.ok()
}

fn asked(place: PathBuf) -> std::io::Result<Vec<u8>> {
    let stream = UnixStream::connect(place)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    let mut bytes = Vec::new();
    stream.take(LONGEST + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Returns the socket's path by the open folder: the folder's own may be too long for a socket, or lead elsewhere by now.
fn place(folder: &Folder) -> PathBuf {
    folder.handle().join(RUNNING)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_asks_gets_the_hour_and_nobody_waits_for_nobody() {
        let dir = tempfile::tempdir().unwrap();
        let folder = Folder::open(dir.path()).unwrap();
        assert_eq!(ask(&folder), None);
        let socket = offer(&folder, Running::default()).unwrap();
        for _ in 0..2 {
            assert_eq!(ask(&folder).unwrap()[..4], *b"PAR1");
        }
        drop(socket);
        assert_eq!(ask(&folder), None);
        assert!(!folder.has(RUNNING).unwrap());
    }
}
