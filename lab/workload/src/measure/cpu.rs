// SPDX-License-Identifier: MIT OR Apache-2.0
//! Use of the machine's CPUs during a run, by all processes.

use serde::{Deserialize, Serialize};

/// Shares of the time of all CPUs, per cent.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Cpu {
    /// Time in user and kernel code.
    pub active_percent: f64,
    /// Idle time.
    pub idle_percent: f64,
    /// Idle time while a task waited for a disk.
    pub iowait_percent: f64,
}

/// Clock ticks of all CPUs since the machine was started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ticks {
    active: u64,
    idle: u64,
    iowait: u64,
}

impl Ticks {
    /// Returns the current counts; None if there is no `/proc/stat`.
    pub(super) fn now() -> Option<Self> {
        Self::parse(&std::fs::read_to_string("/proc/stat").ok()?)
    }

    /// Parses `cpu user nice system idle iowait irq softirq …`. Time stolen from a guest is not counted as any of them.
    fn parse(text: &str) -> Option<Self> {
        let line = text.lines().find_map(|line| line.strip_prefix("cpu "))?;
        let ticks: Vec<u64> = line
            .split_whitespace()
            .map_while(|word| word.parse().ok())
            .collect();
        let &[user, nice, system, idle, iowait, ..] = &ticks[..] else {
            return None;
        };
        let interrupts = ticks.iter().skip(5).take(2);
        Some(Self {
            active: [user, nice, system].iter().chain(interrupts).sum(),
            idle,
            iowait,
        })
    }

    /// Returns the shares since `before`; None if no tick has passed.
    pub(super) fn since(self, before: Self) -> Option<Cpu> {
        let [active, idle, iowait] = [
            self.active.saturating_sub(before.active),
            self.idle.saturating_sub(before.idle),
            self.iowait.saturating_sub(before.iowait),
        ];
        let all = active.saturating_add(idle).saturating_add(iowait);
        let percent = |ticks: u64| ticks as f64 * 100.0 / all as f64;
        (all > 0).then(|| Cpu {
            active_percent: percent(active),
            idle_percent: percent(idle),
            iowait_percent: percent(iowait),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn per_cent_of_the_ticks_between() {
        let of = |text| Ticks::parse(text).unwrap();
        let before = of("cpu  10 0 10 100 5 0 0 7 0 0\ncpu0 10 0 10 100 5 0 0 7 0 0\n");
        let after = of("cpu  20 5 15 160 15 5 5 99 0 0\n");
        let cpu = Cpu {
            active_percent: 30.0,
            idle_percent: 60.0,
            iowait_percent: 10.0,
        };
        assert_eq!(after.since(before), Some(cpu));
        assert_eq!(before.since(before), None);
        assert_eq!(Ticks::parse("cpu 1 2 3\n"), None);
    }
}
