//! How many files this process may have open, and how many of them clients may take. Connections are files, too, and so is
//! each call that is passed on to the leader: neither may leave nothing to the disk and to the other nodes.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::error::ServeError;
use crate::config::HttpLimits;

/// With fewer, a node has its log, its snapshots, its peers and next to no client.
const LEAST: u64 = 128;

/// Log, snapshots, the machinery of the runtime; connections that wait for a refusal; probes and orders when all is full.
const RESERVE: u64 = 256;

/// The calls, the watch and what is passed on between this node and another, both ways.
const RESERVE_EACH: u64 = 96;

/// Takes all that the process may have, without asking anybody. None: as many as it likes.
pub fn raise() -> Option<u64> {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    match setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }) {
        Ok(()) => maximum,
        // Some systems have a bound of their own below what they say.
        Err(_) => current,
    }
}

/// `files` is what the process may open. Connections and calls under way share what the reserve leaves: any call may have
/// to be passed on, which takes a connection to the leader.
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
            "fewer connections than configured: raise `ulimit -n`"
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
