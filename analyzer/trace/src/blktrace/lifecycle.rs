// SPDX-License-Identifier: MIT OR Apache-2.0
//! Request life cycles: finds the bios that a completion finished.
//!
//! A bio *waits* from its Q on. A D gathers the waiting bios that tile its sectors into a *request*; a C takes the request,
//! or the front of it. Merges (M, F) are not needed: the D covers whatever they joined. An X cuts a waiting bio in two,
//! because its front gets a request of its own; an R makes the bios of a request wait again.
//!
//! Flushes are bios of 0 bytes. A write that asks for a flush (`REQ_PREFLUSH`), or for FUA on a device without it, is
//! completed twice: with its bytes, then with 0 bytes at the same sector when the whole sequence has ended. So its first
//! completion leaves a bio of 0 bytes waiting there.
//!
//! Items that match an event are looked up by device, direction and sectors. Several match if the same sectors are in flight more
//! than once. If the events have the bio's number ([`Event::bio`]), it decides. Without it, the bio that the D's thread queued on
//! its CPU is chosen, if no scheduler held it. Otherwise all keep only what they have in common: an unknown thread or time is
//! None, never a guess. If it is even unknown which bios tile the D, the wrong ones may go on waiting, and whatever is queued
//! over these is *in doubt* too. If an event was lost (Q, D or C), its fields are None, and every completed byte is still
//! reported.
//!
//! A bio that the kernel encrypts itself (blk-crypto's fallback) ends after the requests of its ciphertext. The C of such a bio, like
//! that of any bio, is not one of a request (`BLK_TC_FS`); where the disk has requests, it yields no completion.
//!
//! An append to a zone waits and is issued for the zone's first sector; its C has the sector at which the disk wrote it. Where the
//! disk cannot append, the kernel does it, and the D has that sector already.

use super::completion::{Completion, Part};
use super::disks::Disks;
use super::flushes::Flushes;
use super::lane::Lane;
use super::request::{Bio, Request, Sequence};
use super::spans::{Item, STALE_NS, Spans, end};
use super::streams::{Streams, carries_data};
use mostrace_bundle::Zones;
use mostrace_bundle::blk_io_trace::Event;
use mostrace_bundle::blk_io_trace::action::{
    BLK_TC_DISCARD, BLK_TC_FS, BLK_TC_PC, BLK_TC_WRITE, ta,
};
use mostrace_bundle::entry::UNKNOWN_ID;

/// The state between events. It is bounded, whatever the trace lacks: with 16,384 or more waiting items, those that have
/// waited longer than a request may take (30 s) are dropped, and the oldest beyond 262,144.
pub struct LifeCycles {
    waiting: Spans<Bio>,
    issued: Spans<Request>,
    /// True if a waiting bio may be another one than the events say.
    in_doubt: bool,
    streams: Streams,
    flushes: Flushes,
    with_requests: Disks,
    zones: Zones,
    /// The last completion without its parts; `done_parts` has the parts.
    done: Completion<'static>,
    done_parts: Vec<Part>,
    /// Unused lists, kept to reuse their memory.
    spare: Vec<Vec<Part>>,
}

impl Default for LifeCycles {
    fn default() -> Self {
        Self::new()
    }
}

impl LifeCycles {
    /// Starts with nothing in flight.
    #[must_use]
    pub fn new() -> Self {
        Self {
            waiting: Spans::new(),
            issued: Spans::new(),
            in_doubt: false,
            streams: Streams::default(),
            flushes: Flushes::default(),
            with_requests: Disks::default(),
            zones: Zones::default(),
            done: Completion::default(),
            done_parts: Vec::new(),
            spare: Vec::new(),
        }
    }

    /// Sets the zones of the disk.
    #[must_use]
    pub fn of_zones(self, zones: Zones) -> Self {
        Self { zones, ..self }
    }

    /// Sets the zones of the disk whose events come next.
    pub(super) fn set_zones(&mut self, zones: Zones) {
        self.zones = zones;
    }

    /// Takes the next event in time order. Every C yields a completion, except one that ends a bio which requests have ended
    /// already; no other event does.
    pub fn push<'a>(&'a mut self, event: &Event<'_>) -> Option<Completion<'a>> {
        self.step(event).then(|| self.completion())
    }

    /// Returns the completion that the last C yielded.
    pub(super) fn completion(&self) -> Completion<'_> {
        Completion {
            parts: &self.done_parts,
            ..self.done
        }
    }

    /// Takes the next event; returns true if it yields a completion.
    #[inline]
    pub(super) fn step(&mut self, event: &Event<'_>) -> bool {
        if event.is_note() {
            return false;
        }
        self.flushes.see(event);
        match event.act() {
            ta::QUEUE => self.queue(event),
            ta::GETRQ => self.get_request(event),
            ta::INSERT => self.insert(event),
            ta::SPLIT => self.split(event),
            ta::ISSUE => self.issue(event),
            ta::REQUEUE => self.requeue(event),
            ta::COMPLETE => return self.complete(event),
            _ => {}
        }
        false
    }

    fn queue(&mut self, event: &Event<'_>) {
        self.wait(
            event,
            Bio {
                number: event.bio(),
                q_ns: Some(event.time_ns),
                q_cpu: Some(event.cpu),
                pid: Some(event.pid).filter(|&pid| pid != UNKNOWN_ID),
                sequence: Sequence::of(event.action),
                ..Bio::default()
            },
        );
    }

    fn wait(&mut self, event: &Event<'_>, value: Bio) {
        let item = Item {
            bytes: event.bytes,
            since_ns: event.time_ns,
            value,
        };
        self.waiting.insert(lane(event), event.sector, item);
        if self.in_doubt {
            self.spread_doubt(event);
        }
    }

    /// If a bio was queued over one in doubt, it is in doubt too, because either may be taken for the other.
    #[cold]
    fn spread_doubt(&mut self, event: &Event<'_>) {
        // Only the bio itself waits: whatever was in doubt has been issued.
        self.in_doubt = self.waiting.len() > 1;
        let (lane, now) = (lane(event), event.time_ns);
        let is_doubtful = |item: &Item<Bio>| {
            item.value.q_ns.is_none() && now.saturating_sub(item.since_ns) < STALE_NS
        };
        let end = end(event.sector, event.bytes);
        if self.waiting.covers(lane, event.sector, end, is_doubtful) {
            self.doubt(lane, event.sector, event.bytes);
        }
    }

    /// Makes the bios alike that cover the sectors: it is unknown which of them were issued.
    #[cold]
    fn doubt(&mut self, lane: Lane, sector: u64, bytes: u32) {
        self.in_doubt = true;
        let end = end(sector, bytes);
        self.waiting.blur_around(lane, sector, end, Bio::blur);
    }

    /// A G has the bio's sectors. If several bios match, any will do: the D makes them alike.
    fn get_request(&mut self, event: &Event<'_>) {
        let same = |item: &Item<Bio>| item.bytes == event.bytes && item.value.g_ns.is_none();
        match self.waiting.first_at(lane(event), event.sector, same) {
            Some(item) => item.value.g_ns = Some(event.time_ns),
            None => self.wait_unqueued(event, |bio| bio.g_ns = Some(event.time_ns)),
        }
    }

    /// An I covers all bios merged by then; the last matching bio gets the time.
    fn insert(&mut self, event: &Event<'_>) {
        let number = event.bio();
        let is_other = |bio: &Bio| number.is_some() && bio.number.is_some() && bio.number != number;
        let covered = |item: &Item<Bio>| {
            let fits = item.bytes <= event.bytes && (item.bytes > 0 || event.bytes == 0);
            fits && !is_other(&item.value)
        };
        // If several match, any of them may be the one.
        self.waiting
            .each_at(lane(event), event.sector, covered, |bio| bio.is_held = true);
        match self.waiting.last_at(lane(event), event.sector, covered) {
            Some(item) => item.value.insert(event),
            None => self.wait_unqueued(event, |bio| bio.insert(event)),
        }
    }

    /// Keeps what an event says of bios whose Q was not seen, unless that would hide other bios.
    fn wait_unqueued(&mut self, event: &Event<'_>, tell: impl FnOnce(&mut Bio)) {
        if !self
            .waiting
            .overlaps(lane(event), event.sector, event.bytes)
        {
            let mut bio = Bio::default();
            tell(&mut bio);
            self.wait(event, bio);
        }
    }

    /// An X runs in the thread of the Q. It has the front's sectors and the place of the cut. It may have two numbers: that of
    /// the queued bio, which becomes the rest, and that of the front, a new bio.
    fn split(&mut self, event: &Event<'_>) {
        let lane = lane(event);
        let cut = event.split_at().unwrap_or(end(event.sector, event.bytes));
        let Some(front) = cut.checked_sub(event.sector).and_then(bytes_of) else {
            return;
        };
        let reaches = |item: &Item<Bio>| item.bytes > front;
        let own = |item: &Item<Bio>| reaches(item) && item.value.pid == Some(event.pid);
        let now = event.time_ns;
        let bio = numbered(event.split_bio(), |number| {
            let is_it = |item: &Item<Bio>| reaches(item) && item.value.number == number;
            self.waiting.take_that(lane, event.sector, is_it)
        });
        // A thread splits a bio when it submits it: those that it queued before are split already.
        let bio = bio.or_else(|| self.waiting.take_that(lane, event.sector, own));
        let bio = bio.or_else(|| {
            self.waiting
                .take(lane, event.sector, now, reaches, Bio::blur)
        });
        if let Some(bio) = bio {
            let number = event.bio();
            let value = Bio {
                number,
                ..bio.value
            };
            self.put_back(lane, event.sector, &Item { value, ..bio }, front);
            self.put_back_rest(lane, event.sector, &bio, front);
        }
    }

    fn put_back(&mut self, lane: Lane, sector: u64, bio: &Item<Bio>, bytes: u32) {
        if bytes > 0 {
            self.waiting.insert(lane, sector, Item { bytes, ..*bio });
        }
    }

    /// Puts back the rest of a bio after its first `bytes`.
    fn put_back_rest(&mut self, lane: Lane, sector: u64, bio: &Item<Bio>, bytes: u32) {
        let left = bio.bytes.saturating_sub(bytes);
        self.put_back(lane, end(sector, bytes), bio, left);
    }

    fn issue(&mut self, event: &Event<'_>) {
        if is_of_request(event) {
            self.with_requests.add(event.device);
        }
        let mut request = self.gather(event);
        request.d_ns = Some(event.time_ns);
        request.d_cpu = Some(event.cpu);
        request.sequential = self.streams.follows(event);
        if request.sequence == Sequence::Yes && event.bytes > 0 {
            let queued = request.parts.iter().map(|part| part.q_ns).min().flatten();
            request.device_flush = self.flushes.between(event.device, queued, event.time_ns);
        }
        let item = Item {
            bytes: event.bytes,
            since_ns: event.time_ns,
            value: request,
        };
        self.issued.insert(lane(event), event.sector, item);
    }

    /// Takes the waiting bios that tile the sectors of an event. Gaps become parts without a Q.
    fn gather(&mut self, event: &Event<'_>) -> Request {
        let lane = lane(event);
        let mut request = Request {
            number: event.bio(),
            parts: self.spare.pop().unwrap_or_default(),
            ..Request::default()
        };
        let first = self.take_numbered(event, event.sector);
        let first = first.or_else(|| self.take_appended(event, &mut request));
        if event.bytes == 0 {
            let empty = |item: &Item<Bio>| item.bytes == 0;
            let now = event.time_ns;
            let bio =
                first.or_else(|| self.waiting.take(lane, event.sector, now, empty, Bio::blur));
            request.add(event.sector, 0, &bio.map(|b| b.value).unwrap_or_default());
            return request;
        }
        if first.is_none() && request.number.is_some() && self.zones.begin_at(event.sector) {
            // All appends to the zone wait here: a bio of another number is another one.
            request.add(event.sector, event.bytes, &Bio::default());
            return request;
        }
        let mut done: u32 = 0;
        if first.is_none() && request.number.is_some() {
            // The bio of this number may have been taken for one that was merged into another request.
            self.doubt(lane, event.sector, event.bytes);
        }
        if let Some(first) = first {
            request.add(event.sector, first.bytes, &first.value);
            done = first.bytes;
        } else if let Some(bio) = self.take_whole(event) {
            request.add(event.sector, event.bytes, &bio);
            return request;
        }
        while let Some(left) = event.bytes.checked_sub(done).filter(|&left| left > 0) {
            let sector = end(event.sector, done);
            let (bytes, bio) = match self.take_waiting(lane, sector, left, event.time_ns) {
                Some(item) => (item.bytes, item.value),
                None => {
                    let gap = self.gap(lane, sector, left);
                    if self
                        .waiting
                        .covers(lane, sector, end(sector, gap), |_| true)
                    {
                        self.doubt(lane, sector, gap);
                    }
                    (gap, Bio::default())
                }
            };
            request.add(sector, bytes, &bio);
            done = done.saturating_add(bytes);
        }
        request
    }

    /// Takes the bio that has the event's number, if it was queued for the sector.
    fn take_numbered(&mut self, event: &Event<'_>, sector: u64) -> Option<Item<Bio>> {
        numbered(event.bio(), |number| {
            let is_it = |item: &Item<Bio>| {
                let fits = item.bytes <= event.bytes && (item.bytes > 0 || event.bytes == 0);
                fits && item.value.number == number
            };
            self.waiting.take_that(lane(event), sector, is_it)
        })
    }

    /// Takes the bio that has the event's number, if it is to be appended to the zone, and says so in the request.
    fn take_appended(&mut self, event: &Event<'_>, request: &mut Request) -> Option<Item<Bio>> {
        let queued = self.zones.append_sector(event.sector)?;
        let bio = self.take_numbered(event, queued)?;
        request.moved = event.sector.saturating_sub(queued);
        Some(bio)
    }

    /// Takes the bio that is as long as the request, if other bios start there too: these may be shorter and belong to other
    /// requests. If they could make up the request as well, it is unknown which it was, and all of them are blurred.
    fn take_whole(&mut self, event: &Event<'_>) -> Option<Bio> {
        let (lane, sector, now) = (lane(event), event.sector, event.time_ns);
        if self.waiting.count_at(lane, sector, |_| true) < 2 {
            return None;
        }
        let shorter = |item: &Item<Bio>| (1..event.bytes).contains(&item.bytes);
        let same = |item: &Item<Bio>| item.bytes == event.bytes;
        // A thread that issues its own bio does so on the CPU where it queued it.
        let own = |item: &Item<Bio>| {
            let bio = &item.value;
            let from = (bio.pid, bio.q_cpu);
            same(item) && !bio.is_held && from == (Some(event.pid), Some(event.cpu))
        };
        // Bios that a scheduler holds may be issued by any thread, including this one, and several as one request.
        let inserted = |item: &Item<Bio>| (same(item) || shorter(item)) && item.value.is_held;
        // Of a bio that was made like others it is not known who queued it: it may be this thread's, too.
        let nobodys = |item: &Item<Bio>| {
            same(item) && item.value.pid.is_none() && now.saturating_sub(item.since_ns) < STALE_NS
        };
        if self.waiting.count_at(lane, sector, own) == 1
            && self.waiting.count_at(lane, sector, inserted) == 0
            && self.waiting.count_at(lane, sector, nobodys) == 0
        {
            let bio = self.waiting.take(lane, sector, now, own, Bio::blur)?;
            return Some(bio.value);
        }
        self.waiting.first_at(lane, sector, shorter)?;
        let goes_on = |item: &Item<Bio>| {
            let next = end(sector, item.bytes);
            let has_bytes = |item: &Item<Bio>| item.bytes > 0;
            shorter(item) && self.waiting.count_at(lane, next, has_bytes) > 0
        };
        if self.waiting.count_at(lane, sector, same) > 0
            && self.waiting.count_at(lane, sector, goes_on) > 0
        {
            self.doubt(lane, sector, event.bytes);
        }
        Some(self.waiting.take(lane, sector, now, same, Bio::blur)?.value)
    }

    /// Takes the bio that starts at the sector, or else the only one that reaches over it. Its parts outside of the `left` bytes
    /// from `sector` go on waiting.
    fn take_waiting(&mut self, lane: Lane, sector: u64, left: u32, now: u64) -> Option<Item<Bio>> {
        let whole = |item: &Item<Bio>| (1..=left).contains(&item.bytes);
        // If bios of several lengths fit, it is unknown where the next one begins, and which it is.
        if let Some(first) = self.waiting.first_at(lane, sector, whole) {
            let bytes = first.bytes;
            let another = |item: &Item<Bio>| whole(item) && item.bytes != bytes;
            if self.waiting.count_at(lane, sector, another) > 0 {
                self.doubt(lane, sector, left);
            }
        }
        if let Some(bio) = self.waiting.take(lane, sector, now, whole, Bio::blur) {
            return Some(bio);
        }
        let longer =
            |item: &Item<Bio>| item.bytes > left && now.saturating_sub(item.since_ns) < STALE_NS;
        let (start, mut bio) = match self.waiting.take(lane, sector, now, longer, Bio::blur) {
            Some(bio) => (sector, bio),
            None => self.waiting.take_over(lane, sector, now)?,
        };
        let ahead = sector.checked_sub(start).and_then(bytes_of)?;
        self.put_back(lane, start, &bio, ahead);
        bio.bytes = bio.bytes.saturating_sub(ahead);
        self.put_back_rest(lane, sector, &bio, left);
        bio.bytes = bio.bytes.min(left);
        (bio.bytes > 0).then_some(bio)
    }

    /// Returns the bytes from the sector to the next waiting bio, at most `left`.
    fn gap(&mut self, lane: Lane, sector: u64, left: u32) -> u32 {
        let next = self.waiting.next_start(lane, sector, end(sector, left));
        next.and_then(|next| bytes_of(next.saturating_sub(sector)))
            .map_or(left, |gap| gap.min(left))
    }

    fn requeue(&mut self, event: &Event<'_>) {
        let (lane, now) = (lane(event), event.time_ns);
        let Some(request) = self.take_issued_at(event, event.sector) else {
            return;
        };
        for (i, part) in request.parts.iter().enumerate() {
            let bio = Bio {
                number: request.number.filter(|_| i == 0),
                is_held: true,
                q_ns: part.q_ns,
                q_cpu: part.q_cpu,
                pid: part.pid,
                g_ns: request.g_ns.filter(|_| i == 0),
                i_ns: request.i_ns.filter(|_| i == 0),
                i_cpu: request.i_cpu.filter(|_| i == 0),
                d_ns: None,
                d_cpu: None,
                sequence: request.sequence,
                device_flush: None,
            };
            let item = Item {
                bytes: part.bytes,
                since_ns: now,
                value: bio,
            };
            self.waiting.insert(lane, part.sector, item);
        }
        if request.parts.iter().any(|part| part.q_ns.is_none()) {
            self.doubt(lane, event.sector, event.bytes);
        } else if self.in_doubt {
            self.spread_doubt(event);
        }
        self.spare(request.parts);
    }

    fn spare(&mut self, mut parts: Vec<Part>) {
        parts.clear();
        self.spare.push(parts);
    }

    fn complete(&mut self, event: &Event<'_>) -> bool {
        if self.is_second_end(event) {
            return false;
        }
        let mut request = match self.take_issued(event) {
            Some(request) => request,
            // The D was lost, the bio went to a driver without requests, or a flush sequence ended.
            None => Request {
                sequential: self.streams.follows(event),
                ..self.gather(event)
            },
        };
        request.lay_out(event.sector);
        let ended = self.flushes.complete(event, request.d_ns);
        self.done = Completion {
            time_ns: event.time_ns,
            device: event.device,
            action: event.action,
            sector: event.sector,
            moved: request.moved,
            begins_zone: self
                .zones
                .begin_at(event.sector.saturating_sub(request.moved)),
            bytes: event.bytes,
            error: errno(event.error),
            cpu: event.cpu,
            device_flush: ended.or(request.device_flush),
            d_ns: request.d_ns,
            d_cpu: request.d_cpu,
            i_ns: request.i_ns,
            i_cpu: request.i_cpu,
            g_ns: request.g_ns,
            twin: request.twin,
            sequential: request.sequential,
            parts: &[],
        };
        let parts = std::mem::replace(&mut self.done_parts, request.parts);
        self.spare(parts);
        true
    }

    /// Returns true for the end of a bio whose requests have ended. A bio that fails before it has a request still waits. So if a
    /// bio waits for these sectors, the failure is its own.
    fn is_second_end(&mut self, event: &Event<'_>) -> bool {
        event.bytes > 0
            && !is_of_request(event)
            && self.with_requests.has(event.device)
            && (event.error == 0
                || !self
                    .waiting
                    .overlaps(lane(event), event.sector, event.bytes))
    }

    /// Takes the request that a C completes, or the completed front of it; the rest stays issued.
    fn take_issued(&mut self, event: &Event<'_>) -> Option<Request> {
        let (lane, sector, now) = (lane(event), event.sector, event.time_ns);
        let whole = self.take_issued_at(event, sector);
        if let Some(request) = whole.or_else(|| self.take_issued_append(event)) {
            self.expect_end(event, &request);
            return Some(request);
        }
        let longer = |item: &Item<Request>| event.bytes > 0 && item.bytes > event.bytes;
        let mut rest = self.issued.take(lane, sector, now, longer, Request::blur)?;
        let mut parts = self.spare.pop().unwrap_or_default();
        rest.value.cut(event.bytes, &mut parts);
        // The rest may begin with another bio.
        rest.value.number = None;
        let front = Request {
            parts,
            ..rest.value
        };
        rest.bytes = rest.bytes.saturating_sub(event.bytes);
        rest.value.sequential = carries_data(event);
        self.issued.insert(lane, end(sector, event.bytes), rest);
        Some(front)
    }

    /// Takes the request of the event's length that was issued for the sector: that with the event's number if there is one. At the
    /// beginning of a zone, where all appends to it are, no request of another number is taken.
    fn take_issued_at(&mut self, event: &Event<'_>, sector: u64) -> Option<Request> {
        let number = event.bio().filter(|_| self.zones.begin_at(sector));
        let same = |item: &Item<Request>| {
            let is_another = number.zip(item.value.number).is_some_and(|(a, b)| a != b);
            item.bytes == event.bytes && !is_another
        };
        let item = self.take_issued_numbered(event, sector).or_else(|| {
            self.issued
                .take(lane(event), sector, event.time_ns, same, Request::blur)
        });
        item.map(|item| item.value)
    }

    /// Takes the append to the zone that a C completes.
    fn take_issued_append(&mut self, event: &Event<'_>) -> Option<Request> {
        let queued = self.zones.append_sector(event.sector)?;
        let request = self.take_issued_at(event, queued)?;
        Some(Request {
            moved: event.sector.saturating_sub(queued),
            ..request
        })
    }

    /// Takes the request of the event's length whose first bio has the event's number, if it was issued for the sector.
    fn take_issued_numbered(&mut self, event: &Event<'_>, sector: u64) -> Option<Item<Request>> {
        numbered(event.bio(), |number| {
            let is_it =
                |item: &Item<Request>| item.bytes == event.bytes && item.value.number == number;
            self.issued.take_that(lane(event), sector, is_it)
        })
    }

    /// After the data of a flush sequence, adds a waiting bio for its end, the C of 0 bytes.
    fn expect_end(&mut self, event: &Event<'_>, request: &Request) {
        if request.sequence == Sequence::No || event.bytes == 0 {
            return;
        }
        let lane = lane(event);
        // A bio that an earlier FUA write left here was never ended, or it would be gone.
        let leftover = |item: &Item<Bio>| item.bytes == 0 && item.value.sequence == Sequence::Maybe;
        while self
            .waiting
            .take(lane, event.sector, u64::MAX, leftover, Bio::blur)
            .is_some()
        {}
        let last = request.parts.last();
        let end = Bio {
            number: request.number.filter(|_| request.parts.len() == 1),
            is_held: false,
            q_ns: last.and_then(|part| part.q_ns),
            q_cpu: last.and_then(|part| part.q_cpu),
            pid: last.and_then(|part| part.pid),
            g_ns: request.g_ns,
            i_ns: request.i_ns,
            i_cpu: request.i_cpu,
            d_ns: request.d_ns,
            d_cpu: request.d_cpu,
            sequence: request.sequence,
            device_flush: request.device_flush,
        };
        let item = Item {
            bytes: 0,
            since_ns: event.time_ns,
            value: end,
        };
        self.waiting.insert(lane, event.sector, item);
    }
}

/// Returns the lane: device and direction. Passthrough (PC) is a direction of its own; FS is not used, because Q and G do
/// not have it.
fn lane(event: &Event<'_>) -> Lane {
    let mut direction = 0;
    for (i, flag) in [BLK_TC_WRITE, BLK_TC_DISCARD, BLK_TC_PC].iter().enumerate() {
        direction |= u64::from(event.action & flag != 0) << i;
    }
    Lane(u64::from(event.device) << 3 | direction)
}

/// Returns true for an event of a request, and false for one of a bio (blk_add_trace_rq, blk_add_trace_bio in
/// kernel/trace/blktrace.c).
fn is_of_request(event: &Event<'_>) -> bool {
    event.action & (BLK_TC_FS | BLK_TC_PC) != 0
}

/// Looks up by a number if there is one.
fn numbered<T>(
    number: Option<u64>,
    take: impl FnOnce(Option<u64>) -> Option<Item<T>>,
) -> Option<Item<T>> {
    number.and_then(|_| take(number))
}

fn bytes_of(sectors: u64) -> Option<u32> {
    u32::try_from(sectors.checked_mul(512)?).ok()
}

/// Decodes an errno: the kernel's tracers write the block layer's negative errno into an unsigned field.
fn errno(error: u16) -> u16 {
    error.cast_signed().unsigned_abs()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// More bios and requests that never end than are kept leave no more than the documented numbers, and a long trace keeps
    /// only its recent ones.
    #[test]
    fn what_is_kept_is_bounded() {
        let mut cycles = LifeCycles::new();
        let event = |i: u64, action, time_ns| Event {
            time_ns,
            sector: i * 8,
            action,
            bytes: 4096,
            ..Event::default()
        };
        for i in 0..(1 << 18) + 1000 {
            cycles.push(&event(2 * i, ta::QUEUE, i));
            cycles.push(&event(2 * i + 1, ta::ISSUE, i));
            assert!(cycles.waiting.len() <= 1 << 18);
            assert!(cycles.issued.len() <= 1 << 18);
        }
        assert!(cycles.waiting.len() > 1 << 16);
        for i in 0..140_000 {
            cycles.push(&event(i, ta::QUEUE, 10 * STALE_NS + i * (STALE_NS >> 10)));
        }
        assert!(cycles.waiting.len() <= 1 << 15);
    }
}
