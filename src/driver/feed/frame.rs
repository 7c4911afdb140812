//! An event and its text, which is written when the first reader wants it, and once, however many there are.

use std::borrow::Borrow;
use std::ops::Deref;
use std::sync::OnceLock;

use bytes::Bytes;

use crate::feed::RingEvent;

#[derive(Debug)]
pub struct Frame {
    event: RingEvent,
    text: OnceLock<Written>,
}

#[derive(Debug)]
struct Written {
    frame: Bytes,
    /// Where in it the JSON begins.
    json: usize,
}

impl Frame {
    /// As a server-sent event.
    pub fn frame(&self) -> Bytes {
        self.written().frame.clone()
    }

    /// The JSON alone, as one line.
    pub fn line(&self) -> Bytes {
        let Written { frame, json } = self.written();
        frame.slice(*json..frame.len() - 1)
    }

    fn written(&self) -> &Written {
        self.text.get_or_init(|| {
            let mut frame = String::with_capacity(self.size());
            let json = self.write(&mut frame).expect("a string takes everything");
            Written { frame: frame.into(), json }
        })
    }
}

impl From<RingEvent> for Frame {
    fn from(event: RingEvent) -> Frame {
        Frame { event, text: OnceLock::new() }
    }
}

impl Borrow<RingEvent> for Frame {
    fn borrow(&self) -> &RingEvent {
        &self.event
    }
}

impl Deref for Frame {
    type Target = RingEvent;

    fn deref(&self) -> &RingEvent {
        &self.event
    }
}
