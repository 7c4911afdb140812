//! A question to every other node at once, in one hop. Whoever does not answer in time is left out, and why is told.

use std::time::Duration;

use axum::http::header::{AUTHORIZATION, CONTENT_TYPE, HeaderValue};
use axum::http::{HeaderMap, Method, StatusCode};
use bytes::{Bytes, BytesMut};
use futures_util::future::join_all;
use tokio::time::timeout;

use crate::driver::Member;
use crate::http::answer::JSON;
use crate::http::request::{Context, FORWARDED, Origin, say_origin, url_safe};

#[derive(Debug)]
pub struct Question<'a> {
    pub method: Method,
    /// Path and query.
    pub target: &'a str,
    /// What the caller has shown: it is judged there, too.
    pub shown: &'a HeaderMap,
    /// Where the caller is: what it asks for counts for its address, not for this node's.
    pub origin: Option<Origin>,
    /// JSON.
    pub body: Option<Bytes>,
    pub within: Duration,
    /// A longer answer is none.
    pub bytes_most: usize,
}

/// What each other node says, or why it says nothing.
pub async fn ask_others(context: &Context, question: &Question<'_>) -> Vec<(Member, Result<Bytes, String>)> {
    let others = context.setup.others();
    let calls = others.iter().map(|member| async {
        match timeout(question.within, ask(context, member, question)).await {
            Ok(said) => said,
            Err(_) => Err(format!("it did not answer within {} ms", question.within.as_millis())),
        }
    });
    let said = join_all(calls).await;
    others.into_iter().zip(said).collect()
}

async fn ask(context: &Context, member: &Member, question: &Question<'_>) -> Result<Bytes, String> {
    let wall = &context.setup.wall;
    let swallowed = || "it cannot be reached".to_string();
    wall.pass(member.id, question.within, call(context, member, question)).await.ok_or_else(swallowed)?
}

async fn call(context: &Context, member: &Member, question: &Question<'_>) -> Result<Bytes, String> {
    let url = context.url(member.id).ok_or("it belongs to the cluster no more")?;
    let mut headers = HeaderMap::new();
    if let Some(shown) = question.shown.get(AUTHORIZATION) {
        headers.insert(AUTHORIZATION, shown.clone());
    }
    headers.insert(FORWARDED, HeaderValue::from(context.me().0));
    if let Some(origin) = question.origin {
        say_origin(&mut headers, &context.setup, member.id, origin);
    }
    let target = format!("{url}{}", url_safe(question.target));
    let mut sending = context.client.request(question.method.clone(), target).headers(headers);
    if let Some(body) = &question.body {
        sending = sending.header(CONTENT_TYPE, JSON).body(body.clone());
    }
    let mut response = sending.send().await.map_err(|error| match error.is_connect() {
        true => "it cannot be connected to".to_string(),
        false => "its answer did not come".to_string(),
    })?;
    let status = response.status();
    if status != StatusCode::OK {
        return Err(format!("it answers {}", status.as_u16()));
    }
    let mut answer = BytesMut::new();
    while let Some(piece) = response.chunk().await.map_err(|_| "its answer broke off")? {
        answer.extend_from_slice(&piece);
        if answer.len() > question.bytes_most {
            return Err(format!("its answer has more than {} bytes", question.bytes_most));
        }
    }
    Ok(answer.freeze())
}
