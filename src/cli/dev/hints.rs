//! What to try next, as lines that can be pasted.

use super::place::Place;
use super::typed::HELP;

/// `program` is this one, as it was called.
pub fn hints(place: &Place, program: &str) -> String {
    let urls = place.urls();
    let (first, last) = (&urls[0], &urls[urls.len() - 1]);
    let kept = if place.temporary { "removed at the end" } else { "kept" };
    let folder = place.folder.display();
    format!(
        "
  Try in another terminal:
    curl -X PUT {first}/v1/docs/greeting -d '\"hello\"'
    curl {last}/v1/docs/greeting
    curl -X POST {first}/v1/commands \\
         -d '{{\"storage_cmd\":\"CreateUser\",\"payload\":{{\"name\":\"tester\"}}}}'
    {program} status --url {first}
    {program} log cat {folder}/node-1
  Or type here, and Enter:
    {HELP}

  Data: {folder} ({kept}). Ctrl-C ends the cluster.
"
    )
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    #[test]
    fn every_line_fits_a_terminal_and_names_real_addresses() {
        let addresses = ["127.0.0.1:9000", "127.0.0.2:9000"].map(|text| text.parse().expect("an address"));
        let place = Place {
            folder: PathBuf::from("/tmp/eldest-dev-1-0"),
            temporary: true,
            addresses: addresses.to_vec(),
        };
        let text = hints(&place, "eldest");
        assert!(text.contains("curl http://127.0.0.2:9000/v1/docs/greeting\n"), "{text}");
        assert!(text.contains("Data: /tmp/eldest-dev-1-0 (removed at the end)"), "{text}");
        assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
    }
}
