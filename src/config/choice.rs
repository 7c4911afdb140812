//! A setting that is one of a few words.

use super::WrongValue;
use super::layers::Merged;
use super::mistakes::Findings;
use super::wrong::quoted;

/// None after a mistake.
pub fn choice<T: Copy>(
    path: &str,
    found: &str,
    choices: &[(&'static str, T)],
    settings: &Merged,
    findings: &mut Findings,
) -> Option<T> {
    let chosen = choices.iter().find(|(name, _)| *name == found).map(|(_, chosen)| *chosen);
    if chosen.is_none() {
        let choices = choices.iter().map(|(name, _)| *name).collect();
        findings.spoil(settings.place(path), WrongValue::NotOneOf { found: quoted(found), choices });
    }
    chosen
}
