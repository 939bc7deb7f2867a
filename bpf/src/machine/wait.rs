// SPDX-License-Identifier: MIT OR Apache-2.0
//! Sleeps until there is something to do: epoll(7).

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::time::Duration;

/// The descriptors that end a sleep.
#[derive(Debug)]
pub(crate) struct Wait {
    epoll: OwnedFd,
}

impl Wait {
    /// Makes one that only a timeout ends.
    ///
    /// # Errors
    /// Returns an error if no descriptor is left.
    #[allow(unsafe_code)]
    pub fn new() -> io::Result<Wait> {
        // SAFETY: the call takes no pointer.
        let epoll = check(unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) })?;
        // SAFETY: the descriptor is new, and nobody else has it.
        let epoll = unsafe { OwnedFd::from_raw_fd(epoll) };
        Ok(Wait { epoll })
    }

    /// Lets `fd` end sleeps as long as it can be read, or its other end is closed.
    ///
    /// # Errors
    /// Returns an error if `fd` cannot be waited for.
    pub fn while_readable(&self, fd: impl AsFd) -> io::Result<()> {
        self.add(fd, libc::EPOLLIN)
    }

    /// Lets `fd` end a sleep each time that it wakes its waiters, whether or not it could be read before.
    ///
    /// # Errors
    /// Returns an error if `fd` cannot be waited for.
    pub fn when_woken(&self, fd: impl AsFd) -> io::Result<()> {
        self.add(fd, libc::EPOLLIN | libc::EPOLLET)
    }

    #[allow(unsafe_code)]
    fn add(&self, fd: impl AsFd, events: i32) -> io::Result<()> {
        let (epoll, fd) = (self.epoll.as_raw_fd(), fd.as_fd().as_raw_fd());
        let mut event = libc::epoll_event {
            events: events.cast_unsigned(),
            u64: 0,
        };
        // SAFETY: both descriptors are open, and the event lives as long as the call.
        check(unsafe { libc::epoll_ctl(epoll, libc::EPOLL_CTL_ADD, fd, &raw mut event) })?;
        Ok(())
    }

    /// Sleeps until one of the descriptors or a signal ends the sleep, or the time is over.
    ///
    /// # Errors
    /// Returns an error if the kernel refuses.
    #[allow(unsafe_code)]
    pub fn sleep(&self, at_most: Duration) -> io::Result<()> {
        const MANY: usize = 8;
        let epoll = self.epoll.as_raw_fd();
        // Round up, so that a loop does not spin for a time below 1 ms.
        let millis = at_most.as_nanos().div_ceil(1_000_000);
        let millis = i32::try_from(millis).unwrap_or(i32::MAX);
        let mut events = [libc::epoll_event { events: 0, u64: 0 }; MANY];
        let room = events.as_mut_ptr();
        // SAFETY: there is room for MANY events.
        match check(unsafe { libc::epoll_wait(epoll, room, MANY as i32, millis) }) {
            Err(e) if e.kind() != io::ErrorKind::Interrupted => Err(e),
            _ => Ok(()),
        }
    }
}

/// It can itself be read as long as one of its descriptors can.
impl AsFd for Wait {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.epoll.as_fd()
    }
}

fn check(returned: i32) -> io::Result<i32> {
    match returned {
        -1 => Err(io::Error::last_os_error()),
        value => Ok(value),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::time::Instant;

    use super::*;

    const LONG: Duration = Duration::from_secs(60);

    #[test]
    fn what_can_be_read_or_is_closed_ends_the_sleep() {
        let (reader, mut writer) = io::pipe().unwrap();
        let wait = Wait::new().unwrap();
        wait.while_readable(&reader).unwrap();
        let start = Instant::now();
        wait.sleep(Duration::from_millis(30)).unwrap();
        assert!(start.elapsed() >= Duration::from_millis(30));
        writer.write_all(b"x").unwrap();
        for _ in 0..2 {
            wait.sleep(LONG).unwrap();
        }
        let outer = Wait::new().unwrap();
        outer.while_readable(&wait).unwrap();
        outer.sleep(LONG).unwrap();
        drop(writer);
        wait.sleep(LONG).unwrap();
        outer.sleep(LONG).unwrap();
        assert!(start.elapsed() < LONG);
    }

    #[test]
    fn a_wake_ends_one_sleep() {
        let (reader, mut writer) = io::pipe().unwrap();
        let wait = Wait::new().unwrap();
        wait.when_woken(&reader).unwrap();
        writer.write_all(b"x").unwrap();
        let start = Instant::now();
        wait.sleep(LONG).unwrap();
        assert!(start.elapsed() < LONG);
        wait.sleep(Duration::from_millis(30)).unwrap();
        assert!(start.elapsed() >= Duration::from_millis(30));
    }
}
