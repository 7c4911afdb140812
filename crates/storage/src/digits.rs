//! Converts numbers to text and back without `format!`: every record passes here on every node.

use crate::types::NUMBER_MOST;

/// The maximum number of digits of a `u64`.
const DECIMAL_MAX: usize = 20;

const HEX: &[u8; 16] = b"0123456789abcdef";

pub fn push_decimal(out: &mut Vec<u8>, mut number: u64) {
    let mut digits = [0; DECIMAL_MAX];
    let mut at = DECIMAL_MAX;
    loop {
        at -= 1;
        digits[at] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[at..]);
}

pub fn hex8(number: u32) -> [u8; 8] {
    std::array::from_fn(|at| HEX[(number >> (28 - 4 * at)) as usize & 15])
}

/// The lowest `digits` hexadecimal digits.
pub fn push_hex(out: &mut Vec<u8>, number: u128, digits: u32) {
    out.extend((0..digits).rev().map(|at| HEX[(number >> (4 * at)) as usize & 15]));
}

/// The rest of a line. Every read function accepts exactly the form that the writer would write, so each line has only one
/// form.
/// So a record that is decoded and encoded again has the same text: that happens when the lines of a received batch cannot be
/// used.
#[derive(Clone, Copy, Debug)]
pub struct Cursor<'a> {
    rest: &'a [u8],
}

impl<'a> Cursor<'a> {
    pub fn new(text: &'a [u8]) -> Cursor<'a> {
        Cursor { rest: text }
    }

    pub fn rest(&self) -> &'a [u8] {
        self.rest
    }

    pub fn take(&mut self, text: &[u8]) -> Option<()> {
        self.rest = self.rest.strip_prefix(text)?;
        Some(())
    }

    /// A number that the program counts on from. It must be within the bound of such numbers (P50).
    pub fn number(&mut self) -> Option<u64> {
        self.decimal().filter(|number| *number <= NUMBER_MOST)
    }

    /// A decimal number without leading zeros.
    pub fn decimal(&mut self) -> Option<u64> {
        let mut number: u64 = 0;
        let mut taken = 0;
        while let Some(digit) = self.rest.get(taken).map(|byte| byte.wrapping_sub(b'0')).filter(|d| *d < 10) {
            number = number.checked_mul(10)?.checked_add(u64::from(digit))?;
            taken += 1;
        }
        if taken == 0 || (taken > 1 && self.rest[0] == b'0') {
            return None;
        }
        self.rest = &self.rest[taken..];
        Some(number)
    }

    /// A hexadecimal number of exactly that many digits, in lower case. At most 32 digits fit.
    pub fn hex(&mut self, digits: usize) -> Option<u128> {
        let (text, rest) = self.rest.split_at_checked(digits)?;
        let mut number = 0;
        for byte in text {
            let digit = match byte {
                b'0'..=b'9' => byte - b'0',
                b'a'..=b'f' => byte - b'a' + 10,
                _ => return None,
            };
            number = number << 4 | u128::from(digit);
        }
        self.rest = rest;
        Some(number)
    }

    pub fn hex8(&mut self) -> Option<u32> {
        self.hex(8).map(|number| number as u32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_survive_their_text() {
        for number in [0, 7, 10, 99, 1_763_737_161_123_456, u64::MAX] {
            let mut text = Vec::new();
            push_decimal(&mut text, number);
            assert_eq!(text, number.to_string().as_bytes());
            assert_eq!(Cursor::new(&text).decimal(), Some(number));
            text.clear();
            push_hex(&mut text, u128::from(number), 16);
            assert_eq!(text, format!("{number:016x}").as_bytes());
            assert_eq!(Cursor::new(&text).hex(16), Some(u128::from(number)));
        }
        assert_eq!(&hex8(0x0120_beef), b"0120beef");
    }

    #[test]
    fn a_number_has_one_form() {
        for text in ["", "x", "007", "18446744073709551616", "-1"] {
            assert_eq!(Cursor::new(text.as_bytes()).decimal(), None, "{text}");
        }
        for text in ["", "0120beeF", "0120bee", "0120bee "] {
            assert_eq!(Cursor::new(text.as_bytes()).hex8(), None, "{text}");
        }
    }
}
