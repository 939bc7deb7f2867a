// SPDX-License-Identifier: MIT OR Apache-2.0
//! The names of cgroups for people: a container's name where its runtime's files tell it, else the runtime and the container's number; a
//! service's unit; else the path.

use std::collections::HashMap;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use mostrace_bundle::Folder;
use mostrace_trace::live::Line;
use mostrace_trace::text::escape;
use serde_json::Value;

/// The length of a container's number, in hexadecimal digits, and of the part of it that people use.
const ID: usize = 64;
const SHORT: usize = 12;
/// The longest file of a runtime that is read.
const LONGEST: u64 = 16 << 20;

/// The beginning of a scope's name, and the runtime that gives scopes such names.
const SCOPES: [(&str, &str); 4] = [
    ("docker-", "docker"),
    ("libpod-", "podman"),
    ("cri-containerd-", "containerd"),
    ("crio-", "cri-o"),
];

/// Names cgroups, and looks each container up once.
pub struct Names {
    /// The folder below which the runtimes' files are.
    root: PathBuf,
    known: HashMap<String, String>,
}

/// A container, as its cgroup's path tells it.
#[derive(Debug, PartialEq, Eq)]
struct Container<'p> {
    runtime: &'static str,
    id: &'p str,
}

impl Names {
    /// Looks for the runtimes' files below a folder, `/` for those of this machine.
    pub fn new(root: &Path) -> Names {
        Names {
            root: root.to_owned(),
            known: HashMap::new(),
        }
    }

    /// Names the lines, whose names are paths of cgroups; lines of one name are added up.
    pub fn name(&mut self, lines: &[Line]) -> Vec<Line> {
        let mut named: Vec<Line> = Vec::new();
        for line in lines {
            let name = self.of(&line.name);
            match named.iter_mut().find(|known| known.name == name) {
                Some(known) => known.add(line),
                None => named.push(Line {
                    name,
                    ..line.clone()
                }),
            }
        }
        named
    }

    fn of(&mut self, path: &str) -> String {
        let Some(container) = Container::of(path) else {
            return unit(path).unwrap_or(path).to_owned();
        };
        if let Some(known) = self.known.get(container.id) {
            return known.clone();
        }
        let short = container.id.get(..SHORT).unwrap_or(container.id);
        let name = self.told(&container);
        let name = name.map_or(short.into(), |name| escape(name.as_bytes()));
        let name = format!("{} {name}", container.runtime);
        self.known.insert(container.id.into(), name.clone());
        name
    }

    /// Returns the name that the runtime's files give a container.
    fn told(&self, container: &Container<'_>) -> Option<String> {
        let id = container.id;
        match container.runtime {
            "docker" => {
                let told =
                    self.json(&format!("var/lib/docker/containers/{id}"), "config.v2.json")?;
                let name = told.get("Name")?.as_str()?;
                Some(name.trim_start_matches('/').to_owned())
            }
            "containerd" => {
                let folder = format!("run/containerd/io.containerd.runtime.v2.task/k8s.io/{id}");
                let told = self.json(&folder, "config.json")?;
                let name = told
                    .get("annotations")?
                    .get("io.kubernetes.cri.container-name")?;
                Some(name.as_str()?.to_owned())
            }
            _ => {
                let folder = "var/lib/containers/storage/overlay-containers";
                let told = self.json(folder, "containers.json")?;
                let is_it = |one: &&Value| one.get("id").and_then(Value::as_str) == Some(id);
                let one = told.as_array()?.iter().find(is_it)?;
                Some(one.get("names")?.get(0)?.as_str()?.to_owned())
            }
        }
    }

    /// Reads a file of a runtime, which may be anybody's: no link is followed, and not more than [`LONGEST`] is read.
    fn json(&self, folder: &str, name: &str) -> Option<Value> {
        let folder = Folder::open(&self.root.join(folder)).ok()?;
        let file: File = folder.read(name).ok()?;
        let mut text = Vec::new();
        let read = file.take(LONGEST).read_to_end(&mut text);
        read.ok().and_then(|_| serde_json::from_slice(&text).ok())
    }
}

impl Container<'_> {
    /// Finds the innermost container in the path of a cgroup.
    fn of(path: &str) -> Option<Container<'_>> {
        let mut folders = path.split('/').rev().peekable();
        while let Some(folder) = folders.next() {
            let scope = folder.strip_suffix(".scope");
            let begun = |(begin, runtime): &(&str, &'static str)| {
                Some((*runtime, scope?.strip_prefix(begin)?))
            };
            // Without systemd, the folder has the number alone.
            let plain = || {
                let runtime = match *folders.peek()? {
                    "docker" => "docker",
                    "libpod_parent" => "podman",
                    pod if pod.starts_with("pod") => "containerd",
                    _ => return None,
                };
                Some((runtime, folder))
            };
            let found = SCOPES.iter().find_map(begun);
            let found = found.or_else(plain);
            if let Some((runtime, id)) = found.filter(|(_, id)| is_id(id)) {
                return Some(Container { runtime, id });
            }
        }
        None
    }
}

fn is_id(text: &str) -> bool {
    text.len() == ID && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// Returns the innermost unit of systemd in the path of a cgroup.
fn unit(path: &str) -> Option<&str> {
    let is_unit = |folder: &&str| folder.ends_with(".service") || folder.ends_with(".scope");
    path.split('/').rev().find(is_unit)
}

#[cfg(test)]
mod tests {
    use mostrace_trace::live::Amount;

    use super::*;

    const HEX: &str = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

    #[test]
    fn containers_and_services_have_names() {
        let dir = tempfile::tempdir().unwrap();
        let mut names = Names::new(dir.path());
        let mut of = |path: &str| names.of(&path.replace("ID", HEX));
        for (path, name) in [
            ("/system.slice/docker-ID.scope", "docker 0123456789ab"),
            ("/docker/ID", "docker 0123456789ab"),
            ("/docker/ID/init.scope", "docker 0123456789ab"),
            ("/system.slice/nginx.service", "nginx.service"),
            (
                "/user.slice/user-0.slice/session-3.scope",
                "session-3.scope",
            ),
            ("/system.slice/docker-.scope", "docker-.scope"),
            ("/", "/"),
            ("unknown", "unknown"),
        ] {
            assert_eq!(of(path), name, "{path}");
        }
        let runtime = |path: &str| {
            let path = path.replace("ID", HEX);
            Container::of(&path).map(|container| container.runtime)
        };
        assert_eq!(
            runtime("/machine.slice/libpod-ID.scope/container"),
            Some("podman")
        );
        let pod = "/kubepods.slice/kubepods-pod1.slice";
        assert_eq!(
            runtime(&format!("{pod}/cri-containerd-ID.scope")),
            Some("containerd")
        );
        assert_eq!(runtime(&format!("{pod}/crio-ID.scope")), Some("cri-o"));
        assert_eq!(runtime("/kubepods/burstable/pod1-2/ID"), Some("containerd"));
        assert_eq!(runtime("/a/ID"), None);
    }

    #[test]
    fn the_runtimes_files_tell_names() {
        let dir = tempfile::tempdir().unwrap();
        let put = |folder: &str, name: &str, text: &str| {
            let folder = dir.path().join(folder);
            std::fs::create_dir_all(&folder).unwrap();
            std::fs::write(folder.join(name), text.replace("ID", HEX)).unwrap();
        };
        put(
            &format!("var/lib/docker/containers/{HEX}"),
            "config.v2.json",
            r#"{"Name": "/web\u001b[2J"}"#,
        );
        put(
            "var/lib/containers/storage/overlay-containers",
            "containers.json",
            r#"[{"id": "x", "names": ["y"]}, {"id": "ID", "names": ["db"]}]"#,
        );
        put(
            &format!("run/containerd/io.containerd.runtime.v2.task/k8s.io/{HEX}"),
            "config.json",
            r#"{"annotations": {"io.kubernetes.cri.container-name": "api"}}"#,
        );
        let of = |path: &str| Names::new(dir.path()).of(&path.replace("ID", HEX));
        assert_eq!(of("/docker/ID"), r"docker web\x1b[2J");
        assert_eq!(of("/machine.slice/libpod-ID.scope"), "podman db");
        assert_eq!(of("/k.slice/cri-containerd-ID.scope"), "containerd api");
    }

    /// A link, a pipe and what is no JSON tell no name, and nothing waits for them.
    #[test]
    fn a_strangers_file_is_not_followed() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("var/lib/docker/containers").join(HEX);
        std::fs::create_dir_all(&folder).unwrap();
        let file = folder.join("config.v2.json");
        let of = || Names::new(dir.path()).of(&format!("/docker/{HEX}"));
        let told = dir.path().join("told");
        std::fs::write(&told, r#"{"Name": "/web"}"#).unwrap();
        std::os::unix::fs::symlink(&told, &file).unwrap();
        assert_eq!(of(), "docker 0123456789ab");
        std::fs::remove_file(&file).unwrap();
        rustix::fs::mknodat(
            rustix::fs::CWD,
            &file,
            rustix::fs::FileType::Fifo,
            0o600.into(),
            0,
        )
        .unwrap();
        assert_eq!(of(), "docker 0123456789ab");
        std::fs::remove_file(&file).unwrap();
        std::fs::write(&file, "{").unwrap();
        assert_eq!(of(), "docker 0123456789ab");
        std::fs::write(&file, r#"{"Name": "/web"}"#).unwrap();
        assert_eq!(of(), "docker web");
    }

    #[test]
    fn lines_of_one_name_are_added_up() {
        let line = |name: String| Line {
            name,
            all: Amount {
                read: 5,
                ..Amount::default()
            },
            ..Line::default()
        };
        let lines = [
            line(format!("/docker/{HEX}")),
            line(format!("/docker/{HEX}/init.scope")),
            line("/".into()),
        ];
        let named = Names::new(Path::new("/nowhere")).name(&lines);
        let all: Vec<(&str, u64)> = named.iter().map(|l| (&*l.name, l.all.read)).collect();
        assert_eq!(all, [("docker 0123456789ab", 10), ("/", 5)]);
    }
}
