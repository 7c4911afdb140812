//! The text at the end of a help: examples, tables and paragraphs. In the source its lines have any length. Here it is
//! divided into parts, and its lines get the length that a terminal or a man page needs.

use clap::Command;

/// Lines that stay as they are, examples and tables, are broken at this width. clap breaks paragraphs itself.
const COLUMNS: usize = 80;

/// The beginning of the second line of a command that is too long for one.
const CONTINUED: &str = "      ";

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HelpPart {
    /// The heading of the lines below it, such as `Example`.
    Heading(String),
    /// Indented lines, each at most as long as was asked for.
    Lines(Vec<String>),
    /// One line, which the reader's program breaks.
    Paragraph(String),
}

/// The command, with the ends of all its helps made ready for a terminal.
pub fn with_tidy_ends(command: Command) -> Command {
    let end = command.get_after_help().map(|end| tidy(&end.to_string()));
    let command = command.mut_subcommands(with_tidy_ends);
    match end {
        Some(end) => command.after_help(end),
        None => command,
    }
}

fn tidy(text: &str) -> String {
    let part = |part: HelpPart| match part {
        HelpPart::Heading(heading) => format!("{heading}:"),
        HelpPart::Lines(lines) => lines.join("\n"),
        HelpPart::Paragraph(paragraph) => paragraph,
    };
    let block = |parts: Vec<HelpPart>| parts.into_iter().map(part).collect::<Vec<_>>().join("\n");
    blocks(text, COLUMNS).into_iter().map(block).collect::<Vec<_>>().join("\n\n")
}

/// The parts of a text, in blocks that blank lines separate.
pub fn blocks(text: &str, columns: usize) -> Vec<Vec<HelpPart>> {
    text.split("\n\n").map(|block| parts(block, columns)).collect()
}

fn parts(block: &str, columns: usize) -> Vec<HelpPart> {
    let mut parts = Vec::new();
    for line in block.lines() {
        match (line.starts_with(' '), parts.last_mut()) {
            (true, Some(HelpPart::Lines(lines))) => lines.extend(broken(line, columns)),
            (true, _) => {
                head(&mut parts);
                parts.push(HelpPart::Lines(broken(line, columns)));
            }
            (false, Some(HelpPart::Paragraph(paragraph))) => *paragraph = format!("{paragraph} {line}"),
            (false, _) => parts.push(HelpPart::Paragraph(line.to_string())),
        }
    }
    parts
}

/// A paragraph that ends with a colon is the heading of the lines below it.
fn head(parts: &mut [HelpPart]) {
    if let Some(last) = parts.last_mut()
        && let HelpPart::Paragraph(paragraph) = last
        && let Some(heading) = paragraph.strip_suffix(':')
    {
        *last = HelpPart::Heading(heading.to_string());
    }
}

fn broken(line: &str, columns: usize) -> Vec<String> {
    if line.starts_with("  eldest ") { command(line, columns) } else { entry(line, columns) }
}

/// A command that is too long is continued as a shell understands it.
fn command(line: &str, columns: usize) -> Vec<String> {
    const MARK: &str = " \\";
    let (mut lines, mut rest) = (Vec::new(), line.to_string());
    while rest.chars().count() > columns
        && let Some(end) = end_of_line(&rest, columns.saturating_sub(MARK.len()))
    {
        lines.push(format!("{}{MARK}", &rest[..end]));
        rest = format!("{CONTINUED}{}", rest[end..].trim_start());
    }
    lines.push(rest);
    lines
}

/// The last blank at which a command can be broken: not between quotes, and if possible before an option.
fn end_of_line(command: &str, most: usize) -> Option<usize> {
    let indent = command.len() - command.trim_start().len();
    let (mut quote, mut blanks) = (None, Vec::new());
    for (place, c) in command.char_indices().skip(indent) {
        match (c, quote) {
            ('\'' | '"', None) => quote = Some(c),
            (c, Some(open)) if c == open => quote = None,
            (' ', None) if place <= most => blanks.push(place),
            _ => {}
        }
    }
    let is_before_option = |place: &&usize| command[**place..].starts_with(" --");
    blanks.iter().rev().find(is_before_option).or(blanks.last()).copied()
}

/// A line of a table that is too long goes on below its second column.
fn entry(line: &str, columns: usize) -> Vec<String> {
    let indent = line.len() - line.trim_start().len();
    let second = line[indent..].find("  ").map(|gap| &line[indent + gap..]);
    let column = second.map_or(indent, |second| line.len() - second.trim_start().len());
    let (mut lines, mut rest) = (Vec::new(), line.to_string());
    while rest.chars().count() > columns
        && let Some(end) = rest
            .char_indices()
            .filter(|(_, c)| *c == ' ')
            .map(|(place, _)| place)
            .take_while(|place| *place <= columns)
            .last()
        && end > column
    {
        lines.push(rest[..end].trim_end().to_string());
        rest = format!("{:column$}{}", "", rest[end..].trim_start());
    }
    lines.push(rest);
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_paragraph_is_one_line_and_other_lines_stay() {
        let text = "One\nsentence.\n\nExample:\n  eldest a\n  eldest b\nAnd\nmore.";
        assert_eq!(tidy(text), "One sentence.\n\nExample:\n  eldest a\n  eldest b\nAnd more.");
        let expected = [
            vec![HelpPart::Paragraph("One sentence.".into())],
            vec![
                HelpPart::Heading("Example".into()),
                HelpPart::Lines(vec!["  eldest a".into(), "  eldest b".into()]),
                HelpPart::Paragraph("And more.".into()),
            ],
        ];
        assert_eq!(blocks(text, 80), expected);
    }

    #[test]
    fn a_long_command_is_continued_before_an_option() {
        let line = "  eldest drill --yes --break 'docker kill --now' -- sh x";
        let expected = ["  eldest drill --yes \\", "      --break 'docker kill --now' \\", "      -- sh x"];
        assert_eq!(broken(line, 40), expected);
        assert_eq!(broken("  eldest one two three", 16), ["  eldest one \\", "      two three"]);
        assert_eq!(
            broken("  eldest 'one two three four'", 16),
            ["  eldest \\", "      'one two three four'"]
        );
    }

    #[test]
    fn a_long_line_of_a_table_goes_on_in_its_column() {
        assert_eq!(broken("  9   one two three", 15), ["  9   one two", "      three"]);
        assert_eq!(broken("  unbreakable-and-long", 15), ["  unbreakable-and-long"]);
    }
}
