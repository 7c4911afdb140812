//! Tables for people. Columns are as wide as their widest cell, and there are no frames, so that the output can be
//! cut and grepped.

use std::fmt;

use super::out::is_harmful;

/// The default table has no headers.
#[derive(Clone, Debug, Default)]
pub struct Table {
    rows: Vec<Vec<String>>,
}

/// The gap between columns.
const GAP: &str = "  ";

impl Table {
    pub fn new<const N: usize>(headers: [&str; N]) -> Table {
        Table { rows: vec![headers.iter().map(|header| header.to_string()).collect()] }
    }

    pub fn row<const N: usize>(&mut self, cells: [String; N]) {
        self.rows.push(cells.map(|cell| clean(&cell)).to_vec());
    }

    fn widths(&self) -> Vec<usize> {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let width = |row: &Vec<String>, column: usize| row.get(column).map_or(0, |cell| cell.chars().count());
        (0..columns).map(|column| self.rows.iter().map(|row| width(row, column)).max().unwrap_or(0)).collect()
    }
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
}
