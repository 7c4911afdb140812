//! No circle of files by their imports: one of any two files can be read without the other.
//!
//! An arrow goes to the file that an item comes from. A facade that only passes on its children's items is
//! looked through, so a child may name its siblings through their parent. An item that the parent itself
//! defines is an import from the parent: if the parent imports its children, they must not depend on it.
//!
//! Caveats: methods that a file adds to another's type are not imports, and names imported
//! with `*` are not followed.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use crate::paths::{Path, paths};
use crate::source::Source;
use crate::tokens::{inline_depths, text_at};

/// More facades before an item than anyone writes.
const FACADES_MAX: usize = 8;

pub fn check(sources: &[Source]) -> Vec<String> {
    let arrows = House::new(sources).arrows();
    circles(&arrows).iter().map(|circle| complaint(circle, &arrows)).collect()
}

/// The line of an import, and its item.
#[derive(Clone, Debug)]
struct Import {
    line: usize,
    item: String,
}

/// The arrows from each file to each file that it imports from, with the first import.
type Arrows<'a> = BTreeMap<&'a str, BTreeMap<&'a str, Import>>;

/// All modules by their folders: `src/a/b` is the module of `src/a/b.rs` or of `src/a/b/mod.rs`.
struct House<'a> {
    modules: BTreeMap<&'a str, Module<'a>>,
}

struct Module<'a> {
    source: &'a Source,
    paths: Vec<Path>,
    /// For each token, the number of inline modules that it is in.
    depths: Vec<usize>,
    /// The paths of its `use` lines, by the names that they have here.
    names: BTreeMap<String, Vec<String>>,
}

/// An item, or a module as a whole.
struct Target<'a> {
    file: &'a str,
    item: Option<String>,
}

impl<'a> House<'a> {
    fn new(sources: &'a [Source]) -> House<'a> {
        let counts = |source: &&Source| {
            !source.only_for_tests && !source.path.ends_with("/main.rs") && root(source.folder()).is_some()
        };
        let modules = sources.iter().filter(counts).map(|source| (source.folder(), Module::new(source)));
        House { modules: modules.collect() }
    }

    fn arrows(&self) -> Arrows<'a> {
        let mut arrows = Arrows::new();
        for module in self.modules.values() {
            let from = module.source.path.as_str();
            for path in module.paths.iter().filter(|path| !module.source.is_test(path.line)) {
                let depth = module.depths[path.at];
                if let Some(Target { file, item: Some(item) }) = self.target(module, &path.segments, depth, 0)
                    && file != from
                {
                    let import = Import { line: path.line, item };
                    arrows.entry(from).or_default().entry(file).or_insert(import);
                }
            }
        }
        arrows
    }

    /// Returns None for a path that leads to no module of this crate.
    fn target(
        &self,
        from: &Module<'a>,
        segments: &[String],
        depth: usize,
        facades: usize,
    ) -> Option<Target<'a>> {
        let (mut folder, mut rest) = match self.start(from, segments, depth) {
            Some(start) => start,
            None => {
                let through = from.names.get(segments.first()?).filter(|_| segments.len() > 1)?;
                return self.passed_on(from, through, &segments[1..], facades);
            }
        };
        while let Some(child) = rest.first().map(|name| format!("{folder}/{name}"))
            && self.modules.contains_key(child.as_str())
        {
            (folder, rest) = (child, &rest[1..]);
        }
        let module = self.modules.get(folder.as_str())?;
        let Some(item) = rest.first() else {
            return Some(Target { file: &module.source.path, item: None });
        };
        match module.names.get(item) {
            Some(through) => self.passed_on(module, through, &rest[1..], facades),
            None => Some(Target { file: &module.source.path, item: Some(item.clone()) }),
        }
    }

    fn passed_on(
        &self,
        by: &Module<'a>,
        through: &[String],
        rest: &[String],
        facades: usize,
    ) -> Option<Target<'a>> {
        let whole = [through, rest].concat();
        if facades == FACADES_MAX { None } else { self.target(by, &whole, 0, facades + 1) }
    }

    /// The folder that a path begins in, and the rest of the path.
    fn start<'b>(
        &self,
        from: &Module<'a>,
        segments: &'b [String],
        depth: usize,
    ) -> Option<(String, &'b [String])> {
        let own = from.source.folder();
        match segments.first()?.as_str() {
            "crate" => Some((root(own)?.to_string(), &segments[1..])),
            "self" | "super" => {
                let rest = &segments[usize::from(segments[0] == "self")..];
                let supers = rest.iter().take_while(|segment| *segment == "super").count();
                let up = supers.checked_sub(depth)?;
                let folder = (0..up).try_fold(own, |folder, _| Some(folder.rsplit_once('/')?.0))?;
                Some((folder.to_string(), &rest[supers..]))
            }
            child => {
                let is_child = depth == 0 && self.modules.contains_key(format!("{own}/{child}").as_str());
                (is_child && segments.len() > 1).then(|| (own.to_string(), segments))
            }
        }
    }
}

impl<'a> Module<'a> {
    fn new(source: &'a Source) -> Module<'a> {
        let tokens = &source.tokens;
        // `pub(in crate::a)` says who may import, and imports nothing.
        let is_import = |path: &Path| {
            let before = |back: usize| path.at.checked_sub(back).map_or("", |at| text_at(tokens, at));
            !(before(1) == "in" && before(2) == "(" && before(3) == "pub")
        };
        let paths = paths(tokens).into_iter().filter(is_import).collect();
        let depths = inline_depths(tokens);
        let names = names(source, &depths);
        Module { source, paths, depths, names }
    }
}

/// The folder of a crate's root.
fn root(folder: &str) -> Option<&str> {
    match folder.split_once("/src") {
        Some((krate, rest)) if rest.is_empty() || rest.starts_with('/') => Some(&folder[..krate.len() + 4]),
        _ => (folder == "src" || folder.starts_with("src/")).then_some("src"),
    }
}

fn names(source: &Source, depths: &[usize]) -> BTreeMap<String, Vec<String>> {
    let tokens = &source.tokens;
    let mut names = BTreeMap::new();
    let starts = (0..tokens.len()).filter(|&at| tokens[at].text == "use" && depths[at] == 0);
    for start in starts.filter(|&at| !source.is_test(tokens[at].line)) {
        let line = &tokens[start + 1..];
        let line = &line[..line.iter().position(|token| token.text == ";").unwrap_or(line.len())];
        let renamed = |name: &str| {
            let at = (1..line.len()).find(|&at| line[at].text == "as" && line[at - 1].text == name)?;
            Some(text_at(line, at + 1).to_string())
        };
        for Path { segments, .. } in paths(line) {
            if let Some(last) = segments.last().filter(|_| segments.len() > 1) {
                names.insert(renamed(last).unwrap_or_else(|| last.clone()), segments);
            }
        }
    }
    names
}

/// The sets of files that all lead to each other, with more than one file in a set.
fn circles<'a>(arrows: &Arrows<'a>) -> Vec<BTreeSet<&'a str>> {
    let reached: BTreeMap<_, _> = arrows.keys().map(|&file| (file, reached(file, arrows))).collect();
    let leads = |from: &str, to: &str| reached.get(from).is_some_and(|files| files.contains_key(to));
    let mut found: Vec<BTreeSet<&str>> = Vec::new();
    for &file in arrows.keys().filter(|file| leads(file, file)) {
        if !found.iter().any(|circle| circle.contains(file)) {
            found.push(reached[file].keys().copied().filter(|other| leads(other, file)).collect());
        }
    }
    found
}

/// Each file that this one leads to, with the one before it on the shortest way.
fn reached<'a>(start: &'a str, arrows: &Arrows<'a>) -> BTreeMap<&'a str, &'a str> {
    let (mut found, mut open) = (BTreeMap::new(), VecDeque::from([start]));
    while let Some(file) = open.pop_front() {
        for &next in arrows.get(file).into_iter().flat_map(BTreeMap::keys) {
            if !found.contains_key(next) {
                found.insert(next, file);
                open.push_back(next);
            }
        }
    }
    found
}

/// The shortest way around from the circle's first file.
fn complaint(circle: &BTreeSet<&str>, arrows: &Arrows) -> String {
    let first = *circle.first().expect("a circle has files");
    let before = reached(first, arrows);
    let (mut way, mut at) = (first.to_string(), first);
    let line = loop {
        let from = before[at];
        let Import { line, item } = &arrows[from][at];
        way = format!("{from} -> ({item}) {way}");
        at = from;
        if at == first {
            break line;
        }
    };
    let size = circle.len();
    format!("{first}:{line}: a circle of {size} files, {way}; move what they share into a file below them")
}

mod tests {
    use super::*;

    fn complaints(files: &[(&str, &str)]) -> Vec<String> {
        let files: Vec<_> = files.iter().map(|(path, text)| (path.to_string(), text.to_string())).collect();
        check(&Source::all(&files))
    }

    #[test]
    fn one_way_is_no_circle() {
        let files = [
            ("src/lib.rs", "pub mod a;\nmod b;"),
            ("src/a/mod.rs", "mod c;\npub use c::C;\nuse crate::b::B;\npub fn f() -> c::D {}"),
            ("src/a/c.rs", "use super::super::b::B;\npub(in crate::a) struct C;"),
            ("src/b.rs", "use std::fmt;\npub struct B;"),
        ];
        assert_eq!(complaints(&files), Vec::<String>::new());
    }

    #[test]
    fn two_files_that_import_each_other_fail() {
        let files = [("src/a.rs", "\nuse super::b::{B, X};"), ("src/b.rs", "use crate::a::A;")];
        let expected = "src/a.rs:2: a circle of 2 files, src/a.rs -> (B) src/b.rs -> (A) src/a.rs; \
                        move what they share into a file below them";
        assert_eq!(complaints(&files), [expected]);
        let whole =
            [("src/a.rs", "use super::b;\nfn f() { b::g() }"), ("src/b.rs", "fn g() -> crate::a::A {}")];
        assert_eq!(complaints(&whole).len(), 1, "by a module's name");
    }

    #[test]
    fn a_long_way_around_fails_once() {
        let files = [
            ("crates/x/src/a.rs", "use super::b::B;"),
            ("crates/x/src/b.rs", "use super::c::C;"),
            ("crates/x/src/c.rs", "use crate::a::A;"),
            ("crates/x/src/d.rs", "use crate::a::A;"),
        ];
        let found = complaints(&files);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].contains("a circle of 3 files"), "{found:?}");
    }

    #[test]
    fn a_child_that_needs_its_parent_fails() {
        let child = ("src/a/b.rs", "use super::X;");
        assert_eq!(complaints(&[("src/a.rs", "mod b;\nuse b::B;\nstruct X;"), child]).len(), 1);
        assert_eq!(complaints(&[("src/a/mod.rs", "mod b;\npub use b::B;\nstruct X;"), child]).len(), 1);
        assert_eq!(complaints(&[("src/a/mod.rs", "mod b;\nstruct X;"), child]).len(), 0);
    }

    #[test]
    fn facades_are_looked_through() {
        let files = |c| {
            [
                ("src/a/mod.rs", "mod b;\nmod c;\npub use b::B;\npub use c::C as D;"),
                ("src/a/b.rs", "use super::D;"),
                ("src/a/c.rs", c),
            ]
        };
        assert_eq!(complaints(&files("use std::fmt;")), Vec::<String>::new());
        let found = complaints(&files("use crate::a::B;"));
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].contains("src/a/b.rs -> (C) src/a/c.rs -> (B) src/a/b.rs"), "{found:?}");
    }

    #[test]
    fn tests_may_look_anywhere() {
        let files = [
            ("src/a/mod.rs", "use super::b::B;\n#[cfg(test)]\nmod tests;"),
            ("src/a/tests.rs", "use super::super::b::B;"),
            ("src/b.rs", "#[cfg(test)]\nmod tests {\n use crate::a::A;\n}"),
        ];
        assert_eq!(complaints(&files), Vec::<String>::new());
    }

    #[test]
    fn inline_modules_are_their_file() {
        let files = [
            ("src/a/b.rs", "pub struct X;\nmod c { use super::X; }"),
            ("src/a/mod.rs", "mod b;\npub use b::X;"),
        ];
        assert_eq!(complaints(&files), Vec::<String>::new());
    }
}
