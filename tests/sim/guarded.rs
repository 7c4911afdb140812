//! A panic inside the core is a finding of the simulator: it names the line and prints nothing, because
//! mutants panic by design and their backtraces would bury the seed that matters.

use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Once;

use crate::checks::Violation;

thread_local! {
    static GUARDED: Cell<bool> = const { Cell::new(false) };
    static PANIC: RefCell<String> = const { RefCell::new(String::new()) };
}

/// Runs it; a panic counts as a violation of the core's own validation.
pub fn guarded<T>(run: impl FnOnce() -> Result<T, Violation>) -> Result<T, Violation> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let usual = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            if GUARDED.get() {
                PANIC.set(info.to_string());
            } else {
                usual(info);
            }
        }));
    });
    let outer = GUARDED.replace(true);
    let outcome = catch_unwind(AssertUnwindSafe(run));
    GUARDED.set(outer);
    outcome.unwrap_or_else(|_| Err(Violation { checker: "validation", what: PANIC.take() }))
}

pub fn each_holds(scenarios: &[(&str, crate::scenarios::Scenario)]) {
    let broken = scenarios.iter().filter_map(|(name, scenario)| {
        let violation = guarded(*scenario).err()?;
        Some(format!("{name}: {}: {}", violation.checker, violation.what))
    });
    let broken: Vec<String> = broken.collect();
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}
