//! The log on stderr, as text for people or JSON for collectors, and the end of a process that has panicked.

use std::io::stderr;

use tracing_subscriber::EnvFilter;
use tracing_subscriber::util::{SubscriberInitExt, TryInitError};

use super::error::ServeError;
use crate::cli::out::has_colours;
use crate::cli::sources::FILTER_VARIABLE;
use crate::config::{Log, LogFormat};

pub fn install(log: &Log) -> Result<(), ServeError> {
    let filter = filter(log.level.as_str(), std::env::var(FILTER_VARIABLE).ok().as_deref())?;
    let builder = tracing_subscriber::fmt().with_env_filter(filter).with_writer(stderr);
    let installed: Result<(), TryInitError> = match log.format {
        LogFormat::Text => builder.with_ansi(has_colours(&stderr())).finish().try_init(),
        LogFormat::Json => builder.json().flatten_event(true).finish().try_init(),
    };
    // In a test process another subscriber may be installed already, which is fine.
    drop(installed);
    end_on_panic();
    Ok(())
}

fn filter(level: &str, variable: Option<&str>) -> Result<EnvFilter, ServeError> {
    let text = variable.filter(|text| !text.is_empty()).unwrap_or(level);
    EnvFilter::try_new(text)
        .map_err(|error| ServeError::Filter { text: text.to_string(), why: error.to_string() })
}

/// Ends the process on a panic. A node without one of its threads is worse than a dead node, which the others
/// replace.
fn end_on_panic() {
    let report = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        tracing::error!("internal error, the node is ending: {panic}");
        report(panic);
        std::process::abort();
    }));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_variable_overrules_the_level() {
        let shown = |variable| filter("info", variable).map(|filter| filter.to_string()).map_err(|_| ());
        assert_eq!(shown(None), Ok("info".to_string()));
        assert_eq!(shown(Some("")), Ok("info".to_string()));
        assert_eq!(shown(Some("eldest=debug")), Ok("eldest=debug".to_string()));
        assert_eq!(shown(Some("eldest=loud")), Err(()));
    }
}
