//! Writing: from a call to a command, to a verdict, to an answer.

use axum::body::Body;
use axum::http::{Response, StatusCode};

use super::asked::Asked;
use super::context::Context;
use super::errors::Failure;
use super::headers::{ACKS, REPLAYED, set_leader, set_position, value_of};
use super::problem::Problem;
use super::{answers, idempotency, turn};
use crate::driver::api::Written;
use crate::store::Command;

/// How a call reads as a command. Run anew at each turn: a command is given away when it is proposed.
pub type Read = fn(&Asked) -> Result<Command, Failure>;

/// How the verdict reads as an answer.
pub type Show = fn(&Written) -> Response<Body>;

pub async fn take(
    context: &Context,
    asked: &Asked,
    read: Read,
    show: Show,
) -> Result<Response<Body>, Problem> {
    let stay = asked.query(&["forward"])?.stay;
    turn::take(context, asked, turn::Kind::Write, stay, || here(context, asked, read, show)).await
}

async fn here(context: &Context, asked: &Asked, read: Read, show: Show) -> Result<Response<Body>, Failure> {
    let call = idempotency::call(&asked.parts, &asked.body)?;
    let written = context.handle.write(read(asked)?, call).await?;
    let mut response = show(&written);
    let headers = response.headers_mut();
    set_position(headers, written.position);
    set_leader(headers, Some(context.me()));
    match written.acks {
        Some(acks) => {
            let members = context.setup.members.len();
            headers.insert(ACKS, value_of(format!("{acks}/{members}")));
        }
        None => {
            headers.insert(REPLAYED, axum::http::HeaderValue::from_static("true"));
        }
    }
    Ok(response)
}

/// The command's result by itself.
pub fn result(written: &Written, status: StatusCode) -> Response<Body> {
    answers::json(status, answers::shared(written.reply.json.clone()))
}
