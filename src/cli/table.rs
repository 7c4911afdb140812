//! Tables for people. Columns are as wide as their widest cell, and there are no frames, so that the output can be
//! cut and grepped. On a terminal, long values are cut so that each row is one line.

use std::fmt;

use super::out::is_harmful;

/// The default table has no headers.
#[derive(Clone, Debug, Default)]
pub struct Table {
    rows: Vec<Vec<String>>,
    /// The columns that may be cut.
    long: Vec<usize>,
}

/// The gap between columns.
const GAP: &str = "  ";

/// A value is not cut to less than this. On a narrow terminal its row takes two lines.
const LEAST_CHARS: usize = 12;

impl Table {
    pub fn new<const N: usize>(headers: [&str; N]) -> Table {
        Table { rows: vec![headers.iter().map(|header| header.to_string()).collect()], long: Vec::new() }
    }

    /// Names the columns that may be cut. These are values for reading: what the next command needs, such as an id, a
    /// name or a token, must stay whole.
    pub fn long<const N: usize>(mut self, headers: [&str; N]) -> Table {
        let place = |header: &&str| self.rows[0].iter().position(|cell| cell == header);
        self.long = headers.iter().filter_map(place).collect();
        self
    }

    pub fn row<const N: usize>(&mut self, cells: [String; N]) {
        self.rows.push(cells.map(|cell| clean(&cell)).to_vec());
    }

    /// The text for a terminal with this many columns. Without a number nothing is cut, for files and pipes.
    pub fn fitted(&self, columns: Option<usize>) -> String {
        let mut table = self.clone();
        let Some(cap) = columns.map(|columns| cap(&self.widths(), &self.long, columns)) else {
            return self.to_string();
        };
        for row in &mut table.rows {
            for place in &self.long {
                row[*place] = cut(&row[*place], cap);
            }
        }
        table.to_string()
    }

    fn widths(&self) -> Vec<usize> {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let width = |row: &Vec<String>, column: usize| row.get(column).map_or(0, |cell| cell.chars().count());
        (0..columns).map(|column| self.rows.iter().map(|row| width(row, column)).max().unwrap_or(0)).collect()
    }
}

/// The greatest width of the long columns with which a row fits this many columns of a terminal.
fn cap(widths: &[usize], long: &[usize], columns: usize) -> usize {
    let gaps = GAP.len() * widths.len().saturating_sub(1);
    let width = |(place, width): (usize, &usize), cap: usize| {
        if long.contains(&place) { (*width).min(cap) } else { *width }
    };
    let total = |cap: usize| widths.iter().enumerate().map(|each| width(each, cap)).sum::<usize>() + gaps;
    (LEAST_CHARS..=columns).rev().find(|cap| total(*cap) <= columns).unwrap_or(LEAST_CHARS)
}

fn cut(cell: &str, most: usize) -> String {
    if cell.chars().count() <= most {
        return cell.to_string();
    }
    cell.chars().take(most.saturating_sub(1)).chain(['…']).collect()
}

/// A cell without control characters: text from other nodes must not move the cursor or break the line.
fn clean(cell: &str) -> String {
    cell.chars().map(|c| if is_harmful(c) { ' ' } else { c }).collect()
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let widths = self.widths();
        for row in &self.rows {
            let cells: Vec<String> =
                row.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}")).collect();
            writeln!(f, "{}", cells.join(GAP).trim_end())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up_and_lines_end_in_no_blanks() {
        let mut table = Table::new(["ID", "NAME", "TROUBLE"]);
        table.row(["1".into(), "alpha".into(), String::new()]);
        table.row(["22".into(), "βeta-long".into(), "no answer".into()]);
        let expected = "ID  NAME       TROUBLE\n1   alpha\n22  βeta-long  no answer\n";
        assert_eq!(table.to_string(), expected);
    }

    #[test]
    fn a_cell_cannot_break_the_line() {
        let mut table = Table::new(["A"]);
        table.row(["x\ny\u{1b}[2J\u{202e}z".into()]);
        assert_eq!(table.to_string(), "A\nx y [2J z\n");
    }

    #[test]
    fn only_a_long_column_is_cut_and_only_on_a_terminal() {
        let mut table = Table::new(["KEY", "VALUE", "REV"]).long(["VALUE"]);
        table.row(["a-key-of-twenty-chars".into(), "βeta ".repeat(10), "12".into()]);
        let whole = table.to_string();
        assert!(whole.contains(&"βeta ".repeat(10)), "{whole}");
        assert_eq!([None, Some(200)].map(|columns| table.fitted(columns)), [whole.clone(), whole]);
        let expected = "\
KEY                    VALUE              REV
a-key-of-twenty-chars  βeta βeta βeta βe…  12
";
        assert_eq!(table.fitted(Some(46)), expected.replace("VALUE   ", "VALUE    "));
        // The value keeps enough to be recognised, and the key all of it.
        let narrow = table.fitted(Some(10));
        assert!(narrow.contains("a-key-of-twenty-chars  βeta βeta β…  12\n"), "{narrow}");
    }

    #[test]
    fn long_columns_share_the_room() {
        assert_eq!(cap(&[4, 100, 20, 6], &[1, 2], 80), 44);
        assert_eq!(cap(&[4, 100, 90, 6], &[1, 2], 80), 32);
        assert_eq!(cap(&[4, 100], &[], 80), LEAST_CHARS);
        assert_eq!(cut("abc", 3) + &cut("abcd", 3), "abcab…");
    }
}
