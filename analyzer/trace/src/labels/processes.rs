// SPDX-License-Identifier: MIT OR Apache-2.0
//! Labels of processes.

use super::{Lookup, of_known_causes};
use crate::attribute::{self, File, Process, SUBMITTER, called};
use crate::origins::Origins;

/// Returns the label `name:tgid` of each process by its number; if there are several recordings, with the recording's name.
pub fn process_labels(origins: &Origins) -> Vec<Option<String>> {
    let processes = origins.names.processes.iter().enumerate();
    let label = |(at, process): (usize, &Process)| {
        let origin = origins.of_process(at);
        let tgid = process.tgid.or(process.pid)?;
        let name = called(process.process_comm.as_deref());
        Some(format!("{name}:{tgid}{}", origins.suffix(origin)))
    };
    processes.map(label).collect()
}

/// Returns the process that caused a row, or else its submitter, marked as such, by the row's cause, process and file.
pub fn causes_or_submitters(
    origins: &Origins,
) -> Lookup<impl Fn([u64; 3]) -> u64 + Send + Sync + 'static> {
    let labels = process_labels(origins);
    let causers = of_known_causes(origins, |cause| cause.process.0);
    let processes = &origins.names.processes;
    let submitter = |(process, label): (&Process, &Option<String>)| {
        attribute::submitter(process, None, || label.clone().unwrap_or_default())
    };
    let alone = processes.iter().zip(&labels).map(submitter);
    let is_kernels: Vec<bool> = processes
        .iter()
        .map(Process::is_called_like_the_kernels)
        .collect();
    let device = |(at, file): (usize, &File)| {
        let origin = origins.list.get(origins.of_file(at))?;
        origin.loops.of(file)
    };
    let files = origins.names.files.iter().enumerate();
    let devices: Vec<Option<&str>> = files.map(device).collect();
    let is_device: Vec<bool> = devices.iter().map(Option::is_some).collect();
    let first_submitter = processes.len() as u64;
    let first_device = first_submitter.saturating_add(processes.len() as u64);
    let of_devices = devices
        .iter()
        .map(|device| Some(format!("{}{SUBMITTER}", (*device)?)));
    let words: Vec<Option<String>> = labels
        .iter()
        .cloned()
        .chain(alone)
        .chain(of_devices)
        .collect();
    let at = |places: &[bool], place: u64| places.get(place as usize).copied().unwrap_or(false);
    Lookup::new(words, move |[cause, process, file]: [u64; 3]| {
        if let Some(causer) = causers.get(cause as usize).copied().flatten() {
            causer.into()
        } else if at(&is_kernels, process) && at(&is_device, file) {
            first_device.saturating_add(file)
        } else {
            first_submitter.saturating_add(process)
        }
    })
}
