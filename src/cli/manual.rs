//! Man pages, one for each command at any depth. They are the same on every machine: they name the variables of the
//! environment, and have no values of them.

use std::io;

use clap::{Arg, Command};
use clap_mangen::Man;
use clap_mangen::roff::{Inline, Roff, bold, roman};

use super::help::{HelpPart, blocks};

/// A page of 80 columns has margins of 7 and 2.
const LINE_COLUMNS: usize = 71;

#[derive(Clone, Debug)]
pub struct ManPage {
    /// The name with blanks replaced, such as `eldest-doc-put`.
    pub name: String,
    pub text: String,
}

/// The pages of this command and of all commands below it.
pub fn pages(command: Command) -> io::Result<Vec<ManPage>> {
    let mut command = same_everywhere(command.disable_help_subcommand(true));
    command.build();
    let version = command.get_version().unwrap_or_default().to_string();
    let mut pages = Vec::new();
    add(&command, None, &version, &mut pages)?;
    Ok(pages)
}

fn add(command: &Command, parent: Option<&str>, version: &str, pages: &mut Vec<ManPage>) -> io::Result<()> {
    let name = name(command);
    pages.push(ManPage { name: name.clone(), text: page(command, parent, version)? });
    visible(command).try_for_each(|below| add(below, Some(&name), version, pages))
}

fn name(command: &Command) -> String {
    command.get_display_name().unwrap_or(command.get_name()).to_string()
}

fn visible(command: &Command) -> impl Iterator<Item = &Command> {
    command.get_subcommands().filter(|command| !command.is_hide_set())
}

/// The command without the values of variables, and without defaults that say nothing.
fn same_everywhere(command: Command) -> Command {
    let told = |arg: Arg| match arg.get_default_values() {
        [default] if default.is_empty() => arg.hide_default_value(true),
        _ => arg,
    };
    command.subcommand_value_name("COMMAND").mut_args(told).mut_subcommands(same_everywhere)
}

fn page(command: &Command, parent: Option<&str>, version: &str) -> io::Result<String> {
    let end = command.get_after_help().map(ToString::to_string).unwrap_or_default();
    let has_heading = |block: &Vec<HelpPart>| matches!(block.first(), Some(HelpPart::Heading(_)));
    let (sections, prose): (Vec<_>, Vec<_>) = blocks(&end, LINE_COLUMNS).into_iter().partition(has_heading);
    let mut head = Vec::new();
    let described = command.clone().long_about(description(command, prose)).after_help(None::<&str>);
    Man::new(described.subcommand_help_heading("COMMANDS"))
        .title(name(command).to_uppercase())
        // Two builds of the same source must be the same, so there is no date.
        .date("\"\"")
        .source(format!("eldest {version}"))
        .manual("Eldest Manual")
        .render(&mut head)?;
    let mut foot = Roff::new();
    sections.into_iter().flatten().for_each(|part| add_part(&mut foot, part));
    add_links(&mut foot, command, parent);
    let page = without_blank_lines(&String::from_utf8_lossy(&head)) + without_preamble(&foot.render());
    Ok(in_ascii(&page))
}

/// The description of the command, with the paragraphs from the end of its help.
fn description(command: &Command, prose: Vec<Vec<HelpPart>>) -> String {
    let about = command.get_long_about().or(command.get_about()).map(ToString::to_string);
    let text = |part: HelpPart| match part {
        HelpPart::Heading(text) | HelpPart::Paragraph(text) => vec![text],
        HelpPart::Lines(lines) => lines,
    };
    let prose = prose.into_iter().flatten().flat_map(text);
    about.into_iter().chain(prose).filter(|text| !text.is_empty()).collect::<Vec<_>>().join("\n\n")
}

fn add_part(page: &mut Roff, part: HelpPart) {
    match part {
        HelpPart::Heading(heading) => {
            let plural = if heading == "Example" { "s" } else { "" };
            page.control("SH", [format!("{heading}{plural}").to_uppercase().as_str()]);
        }
        // These macros keep each line as it is.
        HelpPart::Lines(lines) => {
            page.control("EX", []);
            for line in lines {
                page.text([roman(line)]);
            }
            page.control("EE", []);
        }
        HelpPart::Paragraph(paragraph) => {
            page.control("PP", []).text([roman(paragraph)]);
        }
    }
}

fn add_links(page: &mut Roff, command: &Command, parent: Option<&str>) {
    let names: Vec<String> =
        parent.map(str::to_string).into_iter().chain(visible(command).map(name)).collect();
    let last = names.len().saturating_sub(1);
    let link = |(place, name): (usize, String)| -> [Inline; 2] {
        [bold(name), roman(if place == last { "(1)" } else { "(1), " })]
    };
    page.control("SH", ["SEE ALSO"]);
    page.text(names.into_iter().enumerate().flat_map(link).collect::<Vec<_>>());
}

/// The page without blank lines. A blank line in front of a macro comes from an option without a help. Others separate paragraphs.
fn without_blank_lines(page: &str) -> String {
    let mut lines = page.lines().peekable();
    let mut kept = String::new();
    while let Some(line) = lines.next() {
        match (line, lines.peek()) {
            ("", Some(next)) if next.starts_with('.') => {}
            ("", None) => {}
            ("", Some(_)) => kept.push_str(".sp\n"),
            // A list of addresses may be broken after a comma.
            (line, _) => kept.extend([line.trim_end().replace(",http", ",\\:http").as_str(), "\n"]),
        }
    }
    // Options and names of commands are not hyphenated, so that they can be copied, and blanks are not stretched.
    kept.replacen(".SH NAME\n", ".nh\n.ad l\n.SH NAME\n", 1)
}

/// A program that shows man pages may not know in which encoding they are.
fn in_ascii(page: &str) -> String {
    let escaped = |c: char| if c.is_ascii() { c.to_string() } else { format!("\\[u{:04X}]", c as u32) };
    page.chars().map(escaped).collect()
}

/// The second half of a page. The definition that each text begins with is in the first half.
fn without_preamble(text: &str) -> &str {
    text.find("\n.SH").map_or(text, |place| &text[place + 1..])
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::process::{Command as Process, Stdio};

    use clap::CommandFactory;

    use super::*;
    use crate::cli::Cli;

    #[test]
    fn every_command_has_a_page() {
        fn names(command: &Command, path: &str) -> Vec<String> {
            let below = |command: &Command| names(command, &format!("{path}-{}", command.get_name()));
            std::iter::once(path.to_string()).chain(visible(command).flat_map(below)).collect()
        }
        let pages = pages(Cli::command()).expect("pages");
        let written: Vec<&str> = pages.iter().map(|page| page.name.as_str()).collect();
        assert_eq!(written, names(&Cli::command(), "eldest"));
        for ManPage { name, text } in &pages {
            let command = name.replace('-', "\\-");
            assert!(text.contains(&format!(".SH NAME\n{command} \\- ")), "{text}");
            assert!(text.contains(&format!(".SH SYNOPSIS\n\\fB{}\\fR", name.replace('-', " "))), "{text}");
            assert!(
                !text.contains("\n\n") && !text.contains('\u{1b}') && !text.contains("\\-help(1)"),
                "{text}"
            );
        }
    }

    #[test]
    fn a_page_names_its_parent_and_the_commands_below_it() {
        let pages = pages(Cli::command()).expect("pages");
        let text = |name: &str| pages.iter().find(|page| page.name == name).expect(name).text.as_str();
        let links = ".SH \"SEE ALSO\"\n\\fBeldest\\fR(1), \\fBeldest\\-doc\\-get\\fR(1), ";
        assert!(text("eldest-doc").contains(links), "{}", text("eldest-doc"));
        let put = text("eldest-doc-put");
        assert!(put.ends_with(".SH \"SEE ALSO\"\n\\fBeldest\\-doc\\fR(1)\n"), "{put}");
        let example = ".SH EXAMPLES\n.EX\n  eldest doc put app/config \\*(Aq{\"replicas\": 3}\\*(Aq \\-\\-if\\-absent\n";
        assert!(put.contains(example), "{put}");
        assert!(put.contains("eldest dev") && !put.contains("http://"), "{put}");
    }

    /// It checks nothing if groff is not installed.
    #[test]
    fn groff_understands_every_page() {
        let mut groff = Process::new("groff");
        groff.args(["-man", "-Tutf8", "-ww", "-rLL=78n", "-z"]).stdin(Stdio::piped()).stderr(Stdio::piped());
        let Ok(mut groff) = groff.spawn() else { return };
        let mut pipe = groff.stdin.take().expect("piped");
        for page in pages(Cli::command()).expect("pages") {
            pipe.write_all(page.text.as_bytes()).expect("groff reads");
        }
        drop(pipe);
        let end = groff.wait_with_output().expect("groff ends");
        assert!(end.stderr.is_empty() && end.status.success(), "{}", String::from_utf8_lossy(&end.stderr));
    }
}
