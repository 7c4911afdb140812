//! "Did you mean": the known word that is closest to a misspelt one.

/// Longer words are no misspelt keys, and the cost of a comparison is the product of the lengths.
const CHARS_MOST: usize = 64;

/// A beginning of a key counts as the key from this length on: `lease` for `lease_ms`.
const BEGINNING_CHARS_LEAST: usize = 3;

/// The closest of `known`. Returns `None` if all are too far. If two are equally close, the shorter one is returned.
pub fn closest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    if word.chars().count() > CHARS_MOST {
        return None;
    }
    let word = word.to_lowercase().replace('-', "_");
    let near = |candidate: &&str| distance(&word, candidate) <= allowed(&word);
    known.into_iter().filter(near).min_by_key(|candidate| (distance(&word, candidate), candidate.len()))
}

/// A third of the letters may be wrong.
fn allowed(word: &str) -> usize {
    (word.chars().count() / 3).max(1)
}

/// The number of letters to insert, remove, replace or swap with their neighbour. A key that is cut off at a `_` has
/// distance one.
fn distance(word: &str, candidate: &str) -> usize {
    let rest = candidate.strip_prefix(word).unwrap_or_default();
    if rest.starts_with('_') && word.len() >= BEGINNING_CHARS_LEAST {
        return 1;
    }
    let (word, candidate): (Vec<char>, Vec<char>) = (word.chars().collect(), candidate.chars().collect());
    let mut before_last: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=candidate.len()).collect();
    for (row, &letter) in word.iter().enumerate() {
        let mut current = vec![row + 1];
        for (column, &other) in candidate.iter().enumerate() {
            let replaced = last[column] + usize::from(letter != other);
            let mut least = replaced.min(last[column + 1] + 1).min(current[column] + 1);
            let swapped = row > 0 && column > 0 && letter == candidate[column - 1] && word[row - 1] == other;
            if swapped {
                least = least.min(before_last[column - 1] + 1);
            }
            current.push(least);
        }
        before_last = std::mem::replace(&mut last, current);
    }
    last[candidate.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    const KNOWN: [&str; 5] = ["heartbeat_ms", "hold_most_ms", "hold_ms", "lease_ms", "ack"];

    #[test]
    fn near_misses_are_understood() {
        for (word, meant) in [
            ("heartbaet_ms", "heartbeat_ms"),
            ("heartbeat", "heartbeat_ms"),
            ("Lease-ms", "lease_ms"),
            ("lease", "lease_ms"),
            ("hold", "hold_ms"),
            ("hold_mst_ms", "hold_most_ms"),
            ("acks", "ack"),
        ] {
            assert_eq!(closest(word, KNOWN), Some(meant), "{word}");
        }
    }

    #[test]
    fn far_misses_are_not() {
        for word in ["", "port", "election_timeout", &"heartbeat_ms".repeat(1000)] {
            assert_eq!(closest(word, KNOWN), None, "{word}");
        }
    }

    #[test]
    fn distances_count_edits() {
        for (a, b, edits) in
            [("", "", 0), ("", "ab", 2), ("ab", "", 2), ("ab", "ba", 1), ("kitten", "sitting", 3)]
        {
            assert_eq!(distance(a, b), edits, "{a} {b}");
        }
    }
}
