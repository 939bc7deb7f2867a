// SPDX-License-Identifier: MIT OR Apache-2.0
//! The state of a bio that waits and of a request that was issued.

use super::completion::Part;
use super::spans::end;
use mostrace_bundle::blk_io_trace::Event;
use mostrace_bundle::blk_io_trace::action::{BLK_TC_FLUSH, BLK_TC_FUA};

/// The state of a bio before it is issued.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Bio {
    /// Its number, by which events of it are recognised; None from a source that does not have it.
    pub number: Option<u64>,
    pub q_ns: Option<u64>,
    pub q_cpu: Option<u32>,
    pub pid: Option<u32>,
    pub g_ns: Option<u64>,
    pub i_ns: Option<u64>,
    pub i_cpu: Option<u32>,
    /// True if it may have been inserted or requeued: then any thread may issue it, not only the one that queued it.
    pub is_held: bool,
    /// Set only for a bio of 0 bytes that ends a flush sequence.
    pub d_ns: Option<u64>,
    pub d_cpu: Option<u32>,
    pub sequence: Sequence,
    /// The device flush that its data waited for; see [`Completion`](super::Completion).
    pub device_flush: Option<u32>,
}

/// The expectation of a completion of 0 bytes after the one with the data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Sequence {
    #[default]
    No,
    /// FUA: a completion follows only if the device lacks FUA.
    Maybe,
    /// The data has a preflush.
    Yes,
}

#[derive(Debug, Default)]
pub(super) struct Request {
    /// The number of its first bio, as in the D.
    pub number: Option<u64>,
    pub d_ns: Option<u64>,
    pub d_cpu: Option<u32>,
    pub i_ns: Option<u64>,
    pub i_cpu: Option<u32>,
    pub g_ns: Option<u64>,
    /// True if another request for the same sectors was in flight.
    pub twin: bool,
    pub sequence: Sequence,
    pub device_flush: Option<u32>,
    /// See [`Completion::moved`](super::Completion::moved).
    pub moved: u64,
    /// Decided when the request is issued, once for each; `blur` does not change it.
    pub sequential: bool,
    pub parts: Vec<Part>,
}

/// Sets fields of both to None unless they are equal.
macro_rules! agree {
    ($one:ident, $other:ident: $($field:ident)+) => {
        $(if $one.$field != $other.$field {
            ($one.$field, $other.$field) = (None, None);
        })+
    };
}

impl Sequence {
    pub fn of(action: u64) -> Self {
        match action {
            a if a & BLK_TC_FLUSH != 0 => Self::Yes,
            a if a & BLK_TC_FUA != 0 => Self::Maybe,
            _ => Self::No,
        }
    }
}

impl Bio {
    /// Notes the bio's I.
    pub fn insert(&mut self, event: &Event<'_>) {
        self.is_held = true;
        self.i_ns = Some(event.time_ns);
        self.i_cpu = Some(event.cpu);
    }

    /// Sets the fields in which the two differ to None in both.
    pub fn blur(&mut self, other: &mut Self) {
        self.is_held |= other.is_held;
        other.is_held = self.is_held;
        agree!(self, other: q_ns q_cpu pid g_ns i_ns i_cpu d_ns d_cpu device_flush);
    }
}

impl Request {
    #[inline]
    pub fn add(&mut self, sector: u64, bytes: u32, bio: &Bio) {
        self.parts.push(Part {
            sector,
            bytes,
            q_ns: bio.q_ns,
            q_cpu: bio.q_cpu,
            pid: bio.pid,
        });
        self.g_ns = self.g_ns.or(bio.g_ns);
        if self.i_ns.is_none() {
            (self.i_ns, self.i_cpu) = (bio.i_ns, bio.i_cpu);
        }
        if self.d_ns.is_none() {
            (self.d_ns, self.d_cpu) = (bio.d_ns, bio.d_cpu);
        }
        self.sequence = self.sequence.max(bio.sequence);
        self.device_flush = self.device_flush.or(bio.device_flush);
    }

    /// Sets the fields in which the two differ to None in both; their parts survive only if they are the same in number and
    /// length.
    pub fn blur(&mut self, other: &mut Self) {
        (self.twin, other.twin) = (true, true);
        agree!(self, other: d_ns d_cpu i_ns i_cpu g_ns device_flush);
        if self.parts.len() == other.parts.len()
            && std::iter::zip(&self.parts, &other.parts).all(|(a, b)| a.bytes == b.bytes)
        {
            for (a, b) in self.parts.iter_mut().zip(&mut other.parts) {
                agree!(a, b: q_ns q_cpu pid);
            }
        } else {
            self.forget_parts();
            other.forget_parts();
        }
    }

    /// Makes the parts follow one another from the sector on. They already do, unless damaged records had lengths that are
    /// not whole sectors.
    pub fn lay_out(&mut self, sector: u64) {
        let mut bytes: u32 = 0;
        for part in &mut self.parts {
            part.sector = end(sector, bytes);
            bytes = bytes.saturating_add(part.bytes);
        }
    }

    /// Replaces the parts by a single unknown one.
    pub fn forget_parts(&mut self) {
        let bytes = self.parts.iter().map(|part| part.bytes).sum();
        self.parts.truncate(1);
        if let Some(part) = self.parts.first_mut() {
            part.bytes = bytes;
            part.q_ns = None;
            part.q_cpu = None;
            part.pid = None;
        }
    }

    /// Cuts off the first `bytes` and puts their parts into `front`.
    pub fn cut(&mut self, bytes: u32, front: &mut Vec<Part>) {
        let mut left = bytes;
        let whole = self.parts.iter().take_while(|part| {
            let rest = left.checked_sub(part.bytes);
            left = rest.unwrap_or(left);
            rest.is_some()
        });
        let whole = whole.count();
        front.extend(self.parts.drain(..whole));
        if left > 0
            && let Some(part) = self.parts.first_mut()
        {
            front.push(Part {
                bytes: left,
                ..*part
            });
            part.sector = end(part.sector, left);
            part.bytes = part.bytes.saturating_sub(left);
        }
    }
}
