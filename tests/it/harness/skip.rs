//! Things that a machine may not allow. A test that needs one fails there, unless a variable leaves it out.

/// True if this variable says to leave a test out. It prints so, because a test that is
/// left out proves nothing.
pub fn left_out(variable: &str, what: &str) -> bool {
    let skip = std::env::var_os(variable).is_some_and(|value| !value.is_empty());
    if skip {
        let test = std::thread::current().name().unwrap_or("a test").to_string();
        // `eprintln!` would not do: it is swallowed with the output of a test that passes.
        let line = format!("\n!!! {test} is LEFT OUT: {variable} says to do without {what}\n");
        let _ = std::io::Write::write_all(&mut std::io::stderr(), line.as_bytes());
    }
    skip
}

/// Runs a command of the system; if it fails, the test fails with its output.
pub fn system(words: &[&str], needed_for: &str) {
    let output = std::process::Command::new(words[0]).args(&words[1..]).output();
    let output = output.unwrap_or_else(|error| panic!("{}: {error}\n{needed_for}", words[0]));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}: {said}\n{needed_for}", words.join(" "));
}
