//! Reports the system's data about this process, under the usual Prometheus names. Linux reports it in `/proc`; on other systems these
//! metrics are absent.

use std::fs;

use super::page::{MetricsPage, SampleKind};

#[derive(Debug, Default, PartialEq)]
pub struct Process {
    cpu_seconds: Option<f64>,
    start_seconds: Option<f64>,
    resident_bytes: Option<f64>,
    threads: Option<f64>,
    open_fds: Option<f64>,
    most_fds: Option<f64>,
}

impl Process {
    pub fn look() -> Process {
        let text = |path: &str| fs::read_to_string(path).unwrap_or_default();
        let mut process = Process::read(&text("/proc/self/stat"), &text("/proc/stat"));
        process.open_fds = fs::read_dir("/proc/self/fd").ok().map(|fds| fds.count() as f64);
        process.most_fds =
            rustix::process::getrlimit(rustix::process::Resource::Nofile).current.map(|most| most as f64);
        process
    }

    /// Returns the number of open files and sockets, and its limit, if the system reports them.
    pub fn files(&self) -> (Option<u64>, Option<u64>) {
        (self.open_fds.map(|open| open as u64), self.most_fds.map(|most| most as u64))
    }

    fn read(stat: &str, machine: &str) -> Process {
        /// Linux uses this unit on every architecture.
        const TICKS: f64 = 100.0;
        // The name of the process may contain blanks and brackets; the fields after it do not.
        let fields: Vec<&str> =
            stat.rsplit_once(')').map_or(Vec::new(), |(_, rest)| rest.split_whitespace().collect());
        let field = |number: usize| fields.get(number - 3)?.parse::<f64>().ok();
        let boot = machine.lines().find_map(|line| line.strip_prefix("btime ")?.trim().parse::<f64>().ok());
        let page = rustix::param::page_size() as f64;
        Process {
            cpu_seconds: field(14).zip(field(15)).map(|(user, system)| (user + system) / TICKS),
            start_seconds: field(22).zip(boot).map(|(ticks, boot)| boot + ticks / TICKS),
            resident_bytes: field(24).map(|pages| pages * page),
            threads: field(20),
            ..Process::default()
        }
    }

    pub fn write(&self, page: &mut MetricsPage) {
        let numbers = [
            (
                "process_cpu_seconds_total",
                SampleKind::Counter,
                "User and system CPU time, in seconds.",
                self.cpu_seconds,
            ),
            (
                "process_start_time_seconds",
                SampleKind::Gauge,
                "Start time, in seconds since 1970.",
                self.start_seconds,
            ),
            (
                "process_resident_memory_bytes",
                SampleKind::Gauge,
                "Resident memory, in bytes.",
                self.resident_bytes,
            ),
            ("process_threads", SampleKind::Gauge, "Threads.", self.threads),
            ("process_open_fds", SampleKind::Gauge, "Open files and sockets.", self.open_fds),
            ("process_max_fds", SampleKind::Gauge, "Limit of open files and sockets.", self.most_fds),
        ];
        for (name, kind, help, value) in numbers {
            if let Some(value) = value {
                page.number(name, kind, help, value);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_brackets_moves_no_field() {
        let stat = "12 (a) b) S 1 1 1 0 -1 4194560 5 0 0 0 250 50 0 0 20 0 9 0 300 1000 7 0";
        let process = Process::read(stat, "cpu 1\nbtime 1000\n");
        assert_eq!((process.cpu_seconds, process.start_seconds), (Some(3.0), Some(1003.0)));
        assert_eq!(process.threads, Some(9.0));
        assert_eq!(process.resident_bytes, Some(7.0 * rustix::param::page_size() as f64));
    }

    #[test]
    fn what_cannot_be_read_is_not_said() {
        for broken in ["", "12 (a", "12 (a) S", "12 (a) S x y"] {
            assert_eq!(Process::read(broken, ""), Process::default(), "{broken}");
        }
    }
}
