// SPDX-License-Identifier: MIT OR Apache-2.0
//! The first look at a foreign trace: the devices in it, and what it tells of each.

use mostrace_bundle::DeviceNumber;
use std::collections::{BTreeMap, BTreeSet, HashMap};

use foldhash::fast::RandomState;
use mostrace_bundle::blk_io_trace::action::ta;
use mostrace_bundle::tracepoints::{Fields, Tells, Volume, placed};

use super::beneath::Beneath;
use super::processes::Processes;
use super::seen::{OfProcess, Remap, Seen, Taker};

/// The most devices.
const MANY: usize = 1 << 16;
/// The most devices that an error lists.
const LISTED: usize = 8;

/// The number of a device's events of three kinds.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counts {
    queued: u64,
    issued: u64,
    completed: u64,
}

/// What the look found.
#[derive(Default)]
pub(super) struct Survey {
    devices: HashMap<u32, Counts, RandomState>,
    partitions: BTreeSet<u32>,
    beneath: Beneath,
    pub processes: Processes,
    pub names: BTreeMap<u32, String>,
}

/// The device that is imported.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Target {
    pub device: u32,
    pub name: String,
    /// Partitions of which the device is known to be the disk.
    pub partitions: BTreeSet<u32>,
    /// The event that stands for the completion: C, or without any C the latest one that there is.
    pub completes_at: u64,
    /// True if bios of partitions are left out, because there are several disks.
    pub leaves_bios: bool,
    /// The filesystem whose files are told.
    pub volume: Option<Volume>,
    /// True if the text has events of files.
    pub tells_files: bool,
    /// True if events of several filesystems are in it.
    pub several_filesystems: bool,
}

impl Target {
    /// Returns true for the device, and for its partitions.
    pub fn has(&self, device: u32) -> bool {
        device == self.device || self.partitions.contains(&device)
    }
}

impl Taker for Survey {
    fn event(&mut self, seen: &Seen<'_>) -> Result<(), String> {
        if self.devices.len() >= MANY && !self.devices.contains_key(&seen.device) {
            return Err(format!("more than {MANY} devices"));
        }
        if let Some(process) = seen.tgid {
            let thread = seen.pid;
            self.processes.take(OfProcess::Thread { thread, process });
        }
        let counts = self.devices.entry(seen.device).or_default();
        let count = match seen.stage {
            ta::QUEUE => {
                self.beneath.queued(seen);
                &mut counts.queued
            }
            ta::ISSUE => &mut counts.issued,
            ta::COMPLETE => &mut counts.completed,
            _ => return Ok(()),
        };
        *count = count.saturating_add(1);
        Ok(())
    }

    fn device(&mut self, number: u32, name: &[u8]) {
        let name = String::from_utf8_lossy(name).into_owned();
        self.names.insert(number, name);
    }

    fn process(&mut self, told: OfProcess<'_>) {
        self.processes.take(told);
    }

    fn remap(&mut self, remap: Remap) {
        if remap.from == remap.to && self.partitions.len() < MANY {
            self.partitions.insert(remap.to);
        }
        self.beneath.remap(remap);
    }

    fn told(&mut self, tells: Tells, dev: Option<u32>, fields: &dyn Fields) {
        if let Some(dev) = dev {
            self.beneath.placed(dev, placed(tells, fields));
        }
    }
}

impl Survey {
    /// Returns the device with the name or number that the user chose, or else the only one with requests.
    ///
    /// # Errors
    /// Returns a line if there is none, or if there are several and none was chosen.
    pub fn target(&self, chosen: Option<&str>) -> Result<Target, String> {
        let with = self.with_requests();
        let is_chosen = |device: u32| {
            chosen.is_none_or(|chosen| {
                let chosen = chosen.replace(',', ":");
                self.name(device) == chosen
                    || self.name(device) == chosen.trim_start_matches("/dev/")
            })
        };
        // A device may be chosen that has bios alone, as one of the device mapper has.
        let known = self.devices.keys().copied();
        let fitting: Vec<u32> = match chosen {
            Some(_) => known.filter(|&device| is_chosen(device)).collect(),
            None => with.clone(),
        };
        match (&fitting[..], chosen) {
            (&[device], _) => Ok(self.of(device, &with)),
            ([], Some(chosen)) if !with.is_empty() => Err(format!(
                "no requests of {chosen} are in it, but of {}",
                self.list(&with)
            )),
            ([], _) => Err("there are no events of requests in it".into()),
            (several, _) => Err(format!(
                "requests of {} devices are in it: choose one with --device, of {}",
                several.len(),
                self.list(several)
            )),
        }
    }

    /// Returns the devices that complete requests; if none does, those with the latest events that there are.
    fn with_requests(&self) -> Vec<u32> {
        let having = |count: fn(&Counts) -> u64| -> Vec<u32> {
            let some = self.devices.iter().filter(|(_, counts)| count(counts) > 0);
            some.map(|(device, _)| *device).collect()
        };
        let kinds: [fn(&Counts) -> u64; 3] = [
            |counts| counts.completed,
            |counts| counts.issued,
            |counts| counts.queued,
        ];
        let mut all = kinds.into_iter().map(having);
        all.find(|some| !some.is_empty()).unwrap_or_default()
    }

    fn of(&self, device: u32, disks: &[u32]) -> Target {
        let counts = self.devices.get(&device).copied().unwrap_or_default();
        let is_only = disks == [device];
        let partitions = match is_only {
            true => self.partitions.clone(),
            false => BTreeSet::new(),
        };
        let is_target = |dev| dev == device || partitions.contains(&dev);
        let volume = self.beneath.volume(is_target);
        Target {
            device,
            name: self.name(device),
            several_filesystems: volume.as_ref().is_some_and(|(_, several)| *several),
            volume: volume.map(|(volume, _)| volume),
            tells_files: self.beneath.is_told(),
            partitions,
            completes_at: match (counts.completed, counts.issued) {
                (1.., _) => ta::COMPLETE,
                (0, 1..) => ta::ISSUE,
                (0, 0) => ta::QUEUE,
            },
            leaves_bios: !is_only && !self.partitions.is_empty(),
        }
    }

    /// Returns a device's name, or major:minor.
    fn name(&self, device: u32) -> String {
        match self.names.get(&device) {
            Some(name) => name.clone(),
            None => DeviceNumber::of(device).to_string(),
        }
    }

    /// Lists devices, those with most events first.
    fn list(&self, devices: &[u32]) -> String {
        let count = |device: u32| {
            let counts = self.devices.get(&device).copied().unwrap_or_default();
            let most = [counts.completed, counts.issued, counts.queued];
            most.into_iter().find(|&count| count > 0).unwrap_or(0)
        };
        let mut listed: Vec<(u64, u32)> = devices.iter().map(|&d| (count(d), d)).collect();
        listed.sort_by(|a, b| b.cmp(a));
        let more = listed.len().saturating_sub(LISTED);
        let words = listed.iter().take(LISTED);
        let words = words.map(|&(count, device)| format!("{} ({count})", self.name(device)));
        let mut words: Vec<String> = words.collect();
        if more > 0 {
            words.push(format!("{more} more"));
        }
        words.join(", ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn survey(events: &[(u32, u64)]) -> Survey {
        let mut survey = Survey::default();
        for &(device, stage) in events {
            let seen = Seen {
                device,
                stage,
                ..Seen::default()
            };
            survey.event(&seen).unwrap();
        }
        survey
    }

    #[test]
    fn one_device_is_chosen() {
        let mut one = survey(&[
            (8 << 20, ta::QUEUE),
            (7 << 20, ta::QUEUE),
            (8 << 20, ta::COMPLETE),
        ]);
        one.remap(Remap {
            from: 259 << 20,
            from_sector: 0,
            to: 259 << 20,
            to_sector: 8,
        });
        let target = one.target(None).unwrap();
        assert_eq!(
            (target.name.as_str(), target.completes_at),
            ("8:0", ta::COMPLETE)
        );
        assert_eq!((target.partitions.len(), target.leaves_bios), (1, false));
        let target = one.target(Some("7,0")).unwrap();
        assert_eq!((target.completes_at, target.leaves_bios), (ta::QUEUE, true));
        let error = one.target(Some("sda")).unwrap_err();
        assert_eq!(error, "no requests of sda are in it, but of 8:0 (1)");

        let two = survey(&[
            (1, ta::ISSUE),
            (2, ta::ISSUE),
            (2, ta::ISSUE),
            (3, ta::QUEUE),
        ]);
        assert_eq!(
            two.target(None).unwrap_err(),
            "requests of 2 devices are in it: choose one with --device, of 0:2 (2), 0:1 (1)"
        );
        assert!(survey(&[]).target(None).is_err());
    }
}
