//! Corrects checksums, in each of the forms that files have.

/// Lines of the log, each chained to the one before: `index epoch checksum rest`.
pub fn log_lines(text: &[u8], mut chain: u32) -> Vec<u8> {
    let mut out = Vec::new();
    for line in text.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
        if let Some(index) = line.strip_prefix(b"= ") {
            out.extend_from_slice(&marker(index, chain));
            continue;
        }
        let mut blanks = line.iter().enumerate().filter(|(_, byte)| **byte == b' ').map(|(at, _)| at);
        if let (Some(_), Some(before)) = (blanks.next(), blanks.next()) {
            let after = &line[blanks.next().map_or(line.len(), |blank| blank + 1)..];
            let mut sum = crc32fast::Hasher::new();
            sum.update(format!("{chain:08x}").as_bytes());
            sum.update(&line[..=before]);
            sum.update(after);
            chain = sum.finalize();
            out.extend_from_slice(&line[..=before]);
            out.extend_from_slice(format!("{chain:08x} ").as_bytes());
            out.extend_from_slice(after);
        } else {
            out.extend_from_slice(line);
        }
        out.push(b'\n');
    }
    out
}

fn marker(rest: &[u8], chain: u32) -> Vec<u8> {
    let index: Vec<u8> = rest.iter().copied().take_while(u8::is_ascii_digit).collect();
    let start = [b"= ", &index[..]].concat();
    let sum = crc32fast::hash(&[format!("{chain:08x}").as_bytes(), &start].concat());
    [&start[..], format!(" {sum:08x}\n").as_bytes()].concat()
}

/// A line that stands alone: `name version checksum json`.
pub fn sealed(line: &[u8]) -> Vec<u8> {
    let words: Vec<&[u8]> = line.splitn(4, |byte| *byte == b' ').collect();
    let [name, version, _, json] = words[..] else { return line.to_vec() };
    let sum = crc32fast::hash(&[name, version, json].join(&b' '));
    [name, version, format!("{sum:08x}").as_bytes(), json].join(&b' ')
}

/// A file of a state, without its last line; `end rows checksum` is added.
pub fn snapshot(text: &[u8]) -> Vec<u8> {
    let lines: Vec<&[u8]> = text
        .split(|byte| *byte == b'\n')
        .filter(|line| !line.is_empty() && !line.starts_with(b"end "))
        .collect();
    let mut out = Vec::new();
    for line in &lines {
        out.extend_from_slice(line);
        out.push(b'\n');
    }
    out.extend_from_slice(format!("end {} ", lines.len().saturating_sub(1)).as_bytes());
    let sum = crc32fast::hash(&out);
    out.extend_from_slice(format!("{sum:08x}\n").as_bytes());
    out
}

/// An identity. Its checksum covers the text with zeros in the checksum's place.
pub fn identity(text: &[u8]) -> Vec<u8> {
    let Ok(text) = str::from_utf8(text) else { return text.to_vec() };
    let sum = format!("{:08x}", crc32fast::hash(text.as_bytes()));
    text.replacen("00000000", &sum, 1).into_bytes()
}
