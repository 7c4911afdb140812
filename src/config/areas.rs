//! Limits on the bytes that some areas of the documents may hold: `"conf/ = 1048576, jobs/ = 104857600"`.

use super::WrongValue;
use super::layers::Merged;
use super::mistakes::Findings;
use super::wrong::quoted;
use crate::types::Text;

const KEY: &str = "limits.prefix_bytes";

/// Each write compares its key with all areas.
const AREAS_MOST: usize = 100;

/// Returns `None` only after a mistake.
pub fn read(settings: &Merged, findings: &mut Findings) -> Option<Vec<(Text, u64)>> {
    match parse(&settings.raw.limits.prefix_bytes) {
        Ok(areas) => Some(areas),
        Err(why) => {
            findings.spoil(settings.place(KEY), WrongValue::Contradiction { why });
            None
        }
    }
}

fn parse(text: &str) -> Result<Vec<(Text, u64)>, String> {
    if text.trim().is_empty() {
        return Ok(Vec::new());
    }
    let mut areas: Vec<(Text, u64)> = Vec::new();
    for item in text.split(',') {
        let (area, bytes) = item.split_once('=').ok_or_else(|| wrong(item))?;
        let (area, bytes) = (area.trim(), bytes.trim().replace('_', "").parse().map_err(|_| wrong(item))?);
        if area.find('/') != Some(area.len().wrapping_sub(1)) {
            return Err(format!("{}: a prefix is a key up to and including its first slash", quoted(area)));
        }
        if areas.iter().any(|(other, _)| **other == *area) {
            return Err(format!("{} is given twice", quoted(area)));
        }
        areas.push((area.into(), bytes));
    }
    match areas.len() > AREAS_MOST {
        true => Err(format!("it names more than {AREAS_MOST} prefixes")),
        false => Ok(areas),
    }
}

fn wrong(item: &str) -> String {
    format!(
        "{}: write a prefix and its bytes, as in \"conf/ = 1048576, jobs/ = 104857600\"",
        quoted(item.trim())
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn areas_are_read_or_refused() {
        assert_eq!(parse(" "), Ok(Vec::new()));
        let two = parse("conf/ = 1_024,jobs/=7").expect("it is well formed");
        assert_eq!(two, [(Text::from("conf/"), 1024), (Text::from("jobs/"), 7)]);
        for wrong in ["conf", "conf = 1", "/ = ", "a/b/ = 1", "a/=1,a/=2", "a/=-1", "a/=x", "=1", "a/=1,"] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }
}
