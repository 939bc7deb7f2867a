// SPDX-License-Identifier: MIT OR Apache-2.0
//! What attached probes say.

use std::cell::{Ref, RefCell, RefMut};
use std::rc::Rc;

use libbpf_rs::{Link, MapCore, RingBuffer, RingBufferBuilder};

use crate::error::{Error, Result};

/// Puts one record of the ring buffer into a `T`.
pub(crate) type Take<T> = fn(&mut T, &[u8]) -> Result<()>;

/// The ring buffer that probes fill, and the `T` that it is emptied into.
pub(crate) struct Stream<T> {
    links: Vec<Link>,
    ring: RingBuffer<'static>,
    sink: Rc<RefCell<Sink<T>>>,
}

/// What the ring buffer's callback leaves for [`Stream::drain`].
struct Sink<T> {
    to: T,
    error: Option<Error>,
}

impl<T: 'static> Stream<T> {
    /// Of probes that are not attached yet.
    pub(super) fn new(map: &dyn MapCore, to: T, take: Take<T>) -> Result<Stream<T>> {
        let sink = Rc::new(RefCell::new(Sink { to, error: None }));
        let mut builder = RingBufferBuilder::new();
        let callback = {
            let sink = Rc::clone(&sink);
            move |record: &[u8]| sink.borrow_mut().take(record, take)
        };
        builder.add(map, callback).map_err(Error::bpf)?;
        let ring = builder.build().map_err(Error::bpf)?;
        Ok(Stream {
            links: Vec::new(),
            ring,
            sink,
        })
    }

    /// Keeps a probe attached as long as the stream lives.
    pub(super) fn keep(&mut self, link: Link) {
        self.links.push(link);
    }

    /// Empties the ring buffer.
    ///
    /// # Errors
    /// A record was not taken, or the kernel refuses.
    pub fn drain(&mut self) -> Result<()> {
        let consumed = self.ring.consume();
        match self.sink.borrow_mut().error.take() {
            Some(e) => Err(e),
            None => consumed.map_err(Error::bpf),
        }
    }

    /// Detaches the probes; what they said before is still to be drained.
    pub fn detach(&mut self) {
        self.links.clear();
    }

    /// What the records have been put into.
    pub fn sink(&self) -> Ref<'_, T> {
        Ref::map(self.sink.borrow(), |sink| &sink.to)
    }

    /// The same.
    pub fn sink_mut(&mut self) -> RefMut<'_, T> {
        RefMut::map(self.sink.borrow_mut(), |sink| &mut sink.to)
    }
}

impl<T> Sink<T> {
    /// Anything but 0 ends the consumption.
    fn take(&mut self, record: &[u8], take: Take<T>) -> i32 {
        match take(&mut self.to, record) {
            Ok(()) => 0,
            Err(e) => {
                self.error = Some(e);
                -1
            }
        }
    }
}
