//! The text format of Prometheus, version 0.0.4: families, each with its help, its kind and its samples.

use std::fmt::{Display, Write};

use super::instrument::Histogram;

pub const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SampleKind {
    Counter,
    Gauge,
}

/// The response to one scrape.
#[derive(Debug, Default)]
pub struct MetricsPage {
    text: String,
}

/// Label names with their values.
type Labels<'a> = &'a [(&'a str, &'a dyn Display)];

impl MetricsPage {
    /// Adds a family with its samples.
    pub fn family<'a>(
        &mut self,
        name: &str,
        kind: SampleKind,
        help: &str,
        samples: impl IntoIterator<Item = (Vec<(&'a str, String)>, f64)>,
    ) {
        let kind = match kind {
            SampleKind::Counter => "counter",
            SampleKind::Gauge => "gauge",
        };
        self.head(name, kind, help);
        for (labels, value) in samples {
            let labels: Vec<(&str, &dyn Display)> =
                labels.iter().map(|(name, value)| (*name, value as &dyn Display)).collect();
            self.sample(name, &labels, value);
        }
    }

    /// Adds a family of one sample without labels.
    pub fn number(&mut self, name: &str, kind: SampleKind, help: &str, value: f64) {
        self.family(name, kind, help, [(Vec::new(), value)]);
    }

    /// Adds a family of histograms, one for each value of a label; without a label name, a single histogram.
    pub fn histograms<'l, 'h>(
        &mut self,
        name: &str,
        help: &str,
        label: &str,
        histograms: impl IntoIterator<Item = (&'l str, &'h Histogram)>,
    ) {
        self.head(name, "histogram", help);
        for (value, histogram) in histograms {
            let own: Labels<'_> = if label.is_empty() { &[] } else { &[(label, &value)] };
            let (rows, all) = histogram.upto();
            for (bound, count) in &rows {
                self.sample(&format!("{name}_bucket"), &[own, &[("le", bound)]].concat(), *count as f64);
            }
            self.sample(&format!("{name}_bucket"), &[own, &[("le", &"+Inf")]].concat(), all as f64);
            self.sample(&format!("{name}_sum"), own, histogram.sum_seconds());
            self.sample(&format!("{name}_count"), own, all as f64);
        }
    }

    pub fn into_text(self) -> String {
        self.text
    }

    fn head(&mut self, name: &str, kind: &str, help: &str) {
        let help = help.replace('\\', "\\\\").replace('\n', "\\n");
        let _ = writeln!(self.text, "# HELP {name} {help}\n# TYPE {name} {kind}");
    }

    fn sample(&mut self, name: &str, labels: Labels<'_>, value: f64) {
        self.text.push_str(name);
        for (number, (label, value)) in labels.iter().enumerate() {
            let value = value.to_string().replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
            let _ = write!(self.text, "{}{label}=\"{value}\"", if number == 0 { '{' } else { ',' });
        }
        let end = if labels.is_empty() { "" } else { "}" };
        let _ = writeln!(self.text, "{end} {value}");
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn families_are_written_as_the_format_wants_them() {
        let mut page = MetricsPage::default();
        page.number("up", SampleKind::Gauge, "It is.", 1.0);
        let label = |text: &str| vec![("name", text.to_string())];
        page.family(
            "calls_total",
            SampleKind::Counter,
            "All of\nthem.",
            [(label("a\"b\\\n"), 2.0), (label("c"), 0.5)],
        );
        let expected = "# HELP up It is.\n# TYPE up gauge\nup 1\n\
                        # HELP calls_total All of\\nthem.\n# TYPE calls_total counter\n\
                        calls_total{name=\"a\\\"b\\\\\\n\"} 2\ncalls_total{name=\"c\"} 0.5\n";
        assert_eq!(page.into_text(), expected);
    }

    #[test]
    fn a_histogram_counts_up() {
        let histogram = Histogram::default();
        histogram.observe(Duration::from_micros(300));
        let mut page = MetricsPage::default();
        page.histograms("took_seconds", "Long.", "route", [("docs", &histogram)]);
        let text = page.into_text();
        for line in [
            "# TYPE took_seconds histogram",
            "took_seconds_bucket{route=\"docs\",le=\"0.00025\"} 0",
            "took_seconds_bucket{route=\"docs\",le=\"0.0005\"} 1",
            "took_seconds_bucket{route=\"docs\",le=\"+Inf\"} 1",
            "took_seconds_sum{route=\"docs\"} 0.0003",
            "took_seconds_count{route=\"docs\"} 1",
        ] {
            assert!(text.lines().any(|found| found == line), "{line} is not in\n{text}");
        }
    }
}
