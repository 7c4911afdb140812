//! Tests with bodies that are cut at every byte.

use futures_util::stream;

use super::*;

/// Returns the lines that a splitter gives for these pieces, each with its number, and whether it gave up.
fn split(pieces: &[&[u8]], line_most: usize) -> (Vec<(u64, Vec<u8>)>, bool) {
    let mut splitter = Splitter::new(line_most);
    let mut lines = Vec::new();
    let mut take = |splitter: &mut Splitter| {
        while let Some(chunk) = splitter.take() {
            assert!(chunk.len() <= CHUNK_LINES);
            assert!(chunk.len() == 1 || chunk.text().len() <= CHUNK_BYTES);
            lines.extend(chunk.lines().map(|(number, line)| (number, line.to_vec())));
        }
    };
    for piece in pieces {
        splitter.push(piece);
        take(&mut splitter);
    }
    splitter.finish();
    take(&mut splitter);
    (lines, splitter.is_overlong())
}

fn texts(lines: &[(u64, Vec<u8>)]) -> Vec<&[u8]> {
    lines.iter().map(|(_, line)| line.as_slice()).collect()
}

#[test]
fn lines_are_the_same_wherever_the_body_is_cut() {
    let body = b"{\"a\":1}\n\n{\"b\":2}\r\nlast";
    let wanted: [&[u8]; 4] = [b"{\"a\":1}", b"", b"{\"b\":2}\r", b"last"];
    for first in 0..=body.len() {
        for second in first..=body.len() {
            let (lines, overlong) = split(&[&body[..first], &body[first..second], &body[second..]], 100);
            assert_eq!(texts(&lines), wanted, "cut at {first} and {second}");
            assert!(lines.iter().map(|(number, _)| *number).eq(1..=4) && !overlong);
        }
    }
    let single: Vec<&[u8]> = body.chunks(1).collect();
    assert_eq!(texts(&split(&single, 100).0), wanted);
}

#[test]
fn nothing_follows_the_last_newline() {
    assert_eq!(split(&[b""], 9), (vec![], false));
    assert_eq!(texts(&split(&[b"a\n"], 9).0), [b"a"]);
    assert_eq!(texts(&split(&[b"\n\n"], 9).0), [b"", b""]);
}

#[test]
fn a_line_that_is_too_long_ends_it_after_those_before() {
    for body in ["ab\n123456", "ab\n123456\ncd\n"] {
        for cut in 0..=body.len() {
            let (lines, overlong) = split(&[&body.as_bytes()[..cut], &body.as_bytes()[cut..]], 5);
            assert_eq!((texts(&lines), overlong), (vec![b"ab".as_slice()], true), "{body:?} cut at {cut}");
        }
    }
    assert_eq!(split(&[b"12345\n12345"], 5).0.len(), 2);
}

#[test]
fn chunks_are_bounded_in_lines_and_bytes() {
    let short = "x\n".repeat(3 * CHUNK_LINES + 7);
    let (lines, _) = split(&[short.as_bytes()], 9);
    assert!(lines.iter().map(|(number, _)| *number).eq(1..=3 * CHUNK_LINES as u64 + 7));
    let long = format!("{}\n", "x".repeat(CHUNK_BYTES / 3)).repeat(10);
    assert_eq!(split(&[long.as_bytes()], CHUNK_BYTES).0.len(), 10);
    let longer = format!("{}\na\n{}\nb", "x".repeat(2 * CHUNK_BYTES), "y".repeat(2 * CHUNK_BYTES));
    assert_eq!(split(&[longer.as_bytes()], 4 * CHUNK_BYTES).0.len(), 4);
}

#[test]
fn what_follows_some_lines_keeps_its_numbers() {
    let text = Bytes::from_static(b"a\nbb\nccc");
    let chunk = Chunk::whole(text.clone(), 7).expect("it is small");
    for count in 0..=3 {
        let after = chunk.after(count);
        let lines: Vec<_> = chunk.lines().skip(count).collect();
        assert_eq!(after.lines().collect::<Vec<_>>(), lines);
        assert_eq!(after, Chunk::whole(after.text().clone(), 7 + count as u64).expect("it is smaller"));
    }
    let most = Bytes::from("\n".repeat(CHUNK_LINES));
    assert_eq!(Chunk::whole(most, 1).map(|chunk| chunk.len()), Some(CHUNK_LINES));
    assert_eq!(Chunk::whole(Bytes::from("\n".repeat(CHUNK_LINES) + "x"), 1), None);
}

#[tokio::test(start_paused = true)]
async fn a_body_gives_what_has_come() {
    let pieces = ["a\nb", "\nc\n", "d"];
    let pieces = pieces.map(|piece| Ok::<_, std::io::Error>(Bytes::from_static(piece.as_bytes())));
    let mut commands = Commands::new(Body::from_stream(stream::iter(pieces)), 100, Duration::from_secs(1));
    for count in [1, 3, 3] {
        assert!(commands.read().await.is_ok() && !commands.is_full());
        assert_eq!(commands.count(), count);
    }
    assert!(commands.read().await.is_ok() && commands.is_full());
    assert_eq!(commands.take().map(|chunk| chunk.len()), Some(4));
    assert_eq!((commands.take(), commands.number(), commands.overlong().is_none()), (None, 5, true));
}

#[tokio::test(start_paused = true)]
async fn silence_and_a_broken_body_end_it() {
    let first = stream::iter([Ok::<_, std::io::Error>(Bytes::from_static(b"a\nb"))]);
    let silent = Body::from_stream(futures_util::StreamExt::chain(first, stream::pending()));
    let mut commands = Commands::new(silent, 100, Duration::from_secs(1));
    assert!(commands.read().await.is_ok());
    assert_eq!(commands.take().map(|chunk| chunk.len()), Some(1));
    let problem = commands.read().await.expect_err("nothing comes");
    assert_eq!((problem.code(), commands.number()), (Code::RequestTimeout, 2));
    let broken = Body::from_stream(stream::iter([Err::<Bytes, _>(std::io::Error::other("gone"))]));
    let ended = Commands::new(broken, 100, Duration::from_secs(1)).read().await;
    assert_eq!(ended.expect_err("it broke").code(), Code::RequestTimeout);
}
