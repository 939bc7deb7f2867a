// SPDX-License-Identifier: MIT OR Apache-2.0
//! What others put into a folder is not followed, not waited for, and not taken for one's own.

use std::fs;
use std::io::Write;
use std::os::unix::fs::{PermissionsExt, chown, symlink};
use std::path::Path;
use std::process::Command;

use mostrace_bundle::Folder;

fn fifo(path: &Path) {
    let made = Command::new("mkfifo").arg(path).status().unwrap();
    assert!(made.success());
}

#[test]
fn a_pipe_a_link_and_a_folder_are_no_files() {
    let dir = tempfile::tempdir().unwrap();
    let folder = Folder::open(dir.path()).unwrap();
    let at = |name: &str| dir.path().join(name);
    fifo(&at("pipe"));
    fs::write(at("aim"), "precious").unwrap();
    symlink(at("aim"), at("link")).unwrap();
    symlink(at("made"), at("dangling")).unwrap();
    fs::create_dir(at("folder")).unwrap();
    // Nobody has the other end of the pipe: to open it without a word would wait.
    for name in ["pipe", "link", "dangling", "folder"] {
        assert!(folder.read(name).is_err(), "{name}");
        assert!(folder.own(name).is_err(), "{name}");
        assert!(folder.append(name).is_err(), "{name}");
    }
    assert_eq!(fs::read_to_string(at("aim")).unwrap(), "precious");
    assert!(!at("made").exists());
    symlink(at("folder"), at("to-folder")).unwrap();
    for name in ["pipe", "aim", "to-folder"] {
        assert!(folder.open_folder(name.as_ref()).is_err(), "{name}");
    }
    assert!(folder.open_folder("folder".as_ref()).is_ok());
}

#[test]
fn a_file_of_ones_own_has_one_name_and_one_owner() {
    let dir = tempfile::tempdir().unwrap();
    let folder = Folder::open(dir.path()).unwrap();
    let path = dir.path().join("x");
    folder.own("x").unwrap().write_all(b"one").unwrap();
    folder.append("x").unwrap().write_all(b" two").unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), "one two");
    assert_eq!(
        fs::metadata(&path).unwrap().permissions().mode() & 0o777,
        0o600
    );
    fs::hard_link(&path, dir.path().join("y")).unwrap();
    assert!(folder.own("x").is_err());
    fs::remove_file(dir.path().join("y")).unwrap();
    folder.own("x").unwrap();
    // Only root can give it away.
    if chown(&path, Some(12345), None).is_ok() {
        assert!(folder.own("x").is_err());
        assert!(folder.append("x").is_err());
        folder.read("x").unwrap();
    }
}

#[test]
fn folders_are_made_and_links_of_others_refused() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    let made = Folder::make(&at("a/b/c")).unwrap();
    made.create("file").unwrap();
    assert_eq!(made.path(), at("a/b/c"));
    assert!(at("a/b/c/file").exists());
    assert!(Folder::make(&at("a/b/c")).unwrap().has("file").unwrap());
    symlink("a/b", at("link")).unwrap();
    assert!(Folder::make(&at("link/c")).unwrap().has("file").unwrap());
    let given = Command::new("chown")
        .args(["-h", "12345"])
        .arg(at("link"))
        .status();
    if given.unwrap().success() {
        for path in ["link", "link/c", "link/new"] {
            let why = Folder::make(&at(path)).unwrap_err().to_string();
            assert!(
                why.ends_with("is a symbolic link of another user's"),
                "{why}"
            );
        }
        assert!(!at("a/b/new").exists());
    }
}

#[test]
fn what_is_set_aside_replaces_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let folder = Folder::open(dir.path()).unwrap();
    for (text, aside) in [("1", "bad"), ("2", "bad-2"), ("3", "bad-3")] {
        fs::write(dir.path().join("x"), text).unwrap();
        assert_eq!(folder.set_aside("x", "bad").unwrap(), aside);
        assert_eq!(fs::read_to_string(dir.path().join(aside)).unwrap(), text);
    }
    assert!(folder.set_aside("x", "bad").is_err());
}
