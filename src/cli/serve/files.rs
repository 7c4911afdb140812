//! The number of files that this process may open, and the number of them that clients may use. Connections are
//! files, and so is each call that is passed on to the leader: neither may use up the files that the disk and the
//! other nodes need.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::error::ServeError;
use crate::config::HttpLimits;

/// With fewer files, a node has its log, its snapshots, its peers and almost no clients.
const LEAST: u64 = 128;

/// Reserved for the log, snapshots and the runtime; for connections that wait for a refusal; for probes and orders
/// when all is full.
const RESERVE: u64 = 256;

/// Reserved for each other node: the calls, the watch and the calls that are passed on, in both directions.
const RESERVE_EACH: u64 = 96;

/// Raises the limit of open files to the most that the process may have. Returns the limit, or `None` if there is
/// none.
pub fn raise() -> Option<u64> {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    match setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }) {
        Ok(()) => maximum,
        // Some systems have a lower bound than the reported one.
        Err(_) => current,
    }
}

/// Fits the limits into `files`, the number of files that the process may open. Connections and open calls share what
/// the reserve leaves: any call may have to be passed on, which takes a connection to the leader.
pub fn fit(limits: &mut HttpLimits, files: Option<u64>, others: usize) -> Result<(), ServeError> {
    let Some(files) = files else {
        return Ok(());
    };
    if files < LEAST {
        return Err(ServeError::FewFiles { files, least: LEAST });
    }
    let reserve = RESERVE + RESERVE_EACH * others as u64;
    let each = (files - reserve.min(files / 2)) / 2;
    let each = usize::try_from(each).unwrap_or(usize::MAX);
    if limits.connections > each {
        let wanted = limits.connections;
        tracing::warn!(
            files,
            wanted,
            connections = each,
            "fewer connections than configured are possible: raise `ulimit -n`"
        );
        limits.connections = each;
    }
    limits.requests = limits.requests.min(each);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fitted(files: Option<u64>) -> Option<(usize, usize)> {
        let mut limits = HttpLimits::default();
        fit(&mut limits, files, 2).ok()?;
        Some((limits.connections, limits.requests))
    }

    #[test]
    fn clients_leave_files_to_the_disk_and_the_peers() {
        let HttpLimits { connections, requests, .. } = HttpLimits::default();
        assert_eq!(fitted(None), Some((connections, requests)));
        assert_eq!(fitted(Some(1 << 20)), Some((connections, requests)));
        for files in [LEAST, 256, 1024, 4096] {
            let (connections, requests) = fitted(Some(files)).expect("enough to run");
            let left = files - (connections + requests) as u64;
            assert!(connections > 0 && left >= (RESERVE + 2 * RESERVE_EACH).min(files / 2), "{files}");
        }
        assert_eq!(fitted(Some(LEAST - 1)), None);
    }
}
