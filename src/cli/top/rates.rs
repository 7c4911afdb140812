//! Rates, computed from two looks at a leader's counters.

use tokio::time::Instant;

/// The counters of one leader, since it started.
#[derive(Clone, Debug, PartialEq)]
pub struct Figures {
    url: String,
    index: f64,
    commits: f64,
    seconds: f64,
}

impl Figures {
    /// Returns `None` if the page is not a page of metrics.
    pub fn read(url: &str, page: &str) -> Option<Figures> {
        let number = |name: &str| {
            let of = |line: &str| line.strip_prefix(name)?.strip_prefix(' ')?.trim().parse::<f64>().ok();
            page.lines().find_map(of)
        };
        Some(Figures {
            url: url.to_string(),
            index: number("eldest_commit_index")?,
            commits: number("eldest_commit_duration_seconds_count")?,
            seconds: number("eldest_commit_duration_seconds_sum")?,
        })
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rate {
    pub records_a_second: f64,
    /// The average time of a commit. `None` if nothing was committed.
    pub commit_ms: Option<f64>,
}

#[derive(Debug, Default)]
pub struct Rates(Option<(Instant, Figures)>);

impl Rates {
    /// The rate since the previous look. Returns `None` at the first look, and if another node leads or the same one
    /// was restarted.
    pub fn of(&mut self, at: Instant, figures: Option<Figures>) -> Option<Rate> {
        let before = std::mem::replace(&mut self.0, figures.clone().map(|figures| (at, figures)));
        let ((then, before), now) = (before?, figures?);
        let (records, commits) = (now.index - before.index, now.commits - before.commits);
        let passed = at.duration_since(then).as_secs_f64();
        if before.url != now.url || records < 0.0 || commits < 0.0 || passed <= 0.0 {
            return None;
        }
        let commit_ms = (commits > 0.0).then(|| (now.seconds - before.seconds) / commits * 1000.0);
        Some(Rate { records_a_second: records / passed, commit_ms })
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn page(index: u32, count: u32, sum: f64) -> String {
        format!(
            "# HELP x y\neldest_commit_index {index}\neldest_commit_duration_seconds_bucket{{le=\"1\"}} 3\n\
             eldest_commit_duration_seconds_sum {sum}\neldest_commit_duration_seconds_count {count}\n"
        )
    }

    #[test]
    fn what_happened_between_two_looks() {
        let (mut rates, began) = (Rates::default(), Instant::now());
        let look = |url: &str, index, count, sum| Figures::read(url, &page(index, count, sum));
        let later = |ms| began + Duration::from_millis(ms);
        assert_eq!(rates.of(began, look("a", 10, 4, 1.0)), None, "the first");
        let rate = rates.of(later(500), look("a", 60, 14, 1.5));
        assert_eq!(rate, Some(Rate { records_a_second: 100.0, commit_ms: Some(50.0) }));
        let idle = rates.of(later(1500), look("a", 60, 14, 1.5));
        assert_eq!(idle, Some(Rate { records_a_second: 0.0, commit_ms: None }));
        assert_eq!(rates.of(later(2000), look("b", 70, 15, 1.6)), None, "another leads");
        assert_eq!(rates.of(later(2500), look("b", 5, 1, 0.1)), None, "it has started anew");
        assert_eq!(rates.of(later(3000), None), None);
        assert_eq!(Figures::read("a", "<html>"), None);
    }
}
