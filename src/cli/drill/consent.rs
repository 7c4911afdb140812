//! The consent of the person who starts a drill: the name of the cluster, typed at the terminal.

use std::io::{IsTerminal, stderr, stdin};

use crate::cli::exit::Failure;
use crate::cli::out::note;
use crate::cli::output::Output;

/// A script is not asked: it says --yes.
pub fn can_be_typed(output: &Output) -> bool {
    stdin().is_terminal() && stderr().is_terminal() && !output.is_for_scripts()
}

pub fn typed(meaning: &str, cluster: &str) -> Result<(), Failure> {
    note(&format!("{meaning}\nTo do it now, type the name of the cluster, {cluster}, and press Enter:"));
    let mut line = String::new();
    stdin().read_line(&mut line).map_err(Failure::file("the terminal"))?;
    check(&line, cluster)
}

fn check(line: &str, cluster: &str) -> Result<(), Failure> {
    if line.trim() == cluster {
        return Ok(());
    }
    Err(Failure::Usage { what: format!("this cluster is {cluster}; nothing was done") })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_name_is_a_consent() {
        assert!(check("prod\n", "prod").is_ok());
        for line in ["", "\n", "y\n", "yes\n", "prod2\n", "PROD\n"] {
            let refused = check(line, "prod").expect_err(line);
            assert_eq!(refused.code(), 2, "{line}");
            assert_eq!(refused.to_string(), "this cluster is prod; nothing was done", "{line}");
        }
    }
}
