//! How large a number from outside may be: from a message, a header, a file (P50).

/// Up to here every reader of JSON is exact. What is counted from one never gets so far: a million a second, for 285 years.
pub const NUMBER_MOST: u64 = (1 << 53) - 1;

/// No log goes beyond this. Whatever is added to an index that somebody names stays far below `NUMBER_MOST`.
pub const INDEX_MOST: u64 = 1 << 52;

/// A number as people and messages write it. None above `NUMBER_MOST`.
pub fn number(text: &str) -> Option<u64> {
    text.parse().ok().filter(|number| *number <= NUMBER_MOST)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_end_where_readers_of_json_lose_count() {
        assert_eq!(number("9007199254740991"), Some(NUMBER_MOST));
        for wrong in ["9007199254740992", "18446744073709551615", "18446744073709551616", "-1", "", "1.0"] {
            assert_eq!(number(wrong), None, "{wrong}");
        }
    }
}
