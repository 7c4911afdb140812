//! Reading an answer without an end, for printing.

use super::exit::Failure;
use super::out::note;
use crate::client::{CallError, End, Lines};

/// The next line; none when the answer has ended, or has broken off.
pub async fn next(lines: &mut Lines) -> Result<Option<String>, Failure> {
    match lines.next().await {
        Ok(line) => Ok(Some(line)),
        Err(End::Ended) => Ok(None),
        Err(End::BrokenOff { why }) => {
            note(&format!("{}: {why}", lines.url()));
            Ok(None)
        }
        Err(End::TooLong { why }) => Err(CallError::Strange { url: lines.url().to_string(), why }.into()),
    }
}
