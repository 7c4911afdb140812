//! A body that keeps its seat until it has been sent, or given up: what it holds is memory that counts.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context as Task, Poll};

use axum::body::Body;
use bytes::Bytes;
use hyper::body::{Frame, SizeHint};

use crate::http::request::Seat;

pub struct Seated {
    body: Body,
    _seat: Arc<Seat>,
}

impl Seated {
    pub fn body(body: Body, seat: Arc<Seat>) -> Body {
        Body::new(Seated { body, _seat: seat })
    }
}

impl hyper::body::Body for Seated {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        task: &mut Task<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(task)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
