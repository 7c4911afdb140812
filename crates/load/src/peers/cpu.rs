//! The processor time that processes have had.

use std::time::Duration;

/// In which Linux counts it for everybody.
const TICK: Duration = Duration::from_millis(10);

/// Of all of them together. One that is gone counts nothing.
pub fn of(pids: &[i32]) -> Duration {
    let ticks = pids.iter().filter_map(|pid| {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        ticks(&stat)
    });
    TICK * ticks.sum::<u64>() as u32
}

/// In user mode and in the system's, which are the 14th and the 15th word. The second is a name, in brackets.
fn ticks(stat: &str) -> Option<u64> {
    let (_, words) = stat.rsplit_once(") ")?;
    let mut words = words.split(' ').skip(11);
    Some(words.next()?.parse::<u64>().ok()? + words.next()?.parse::<u64>().ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_may_be_anything() {
        let stat = "42 (a) b) S 1 2 3 4 5 6 7 8 9 10 300 21 0 0 20 0";
        assert_eq!(ticks(stat), Some(321));
        assert_eq!(ticks("42 (a) S 1"), None);
        assert_eq!(of(&[]), Duration::ZERO);
        // Its own.
        assert!(of(&[std::process::id() as i32]) < Duration::from_secs(3600));
    }
}
