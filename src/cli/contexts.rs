//! The file of contexts: clusters by name, each with its addresses and the files that a call to it needs.
//!
//! It names files and holds no secret. It is replaced as a whole, by a rename, and one change at a time.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{FlockOperation, OFlags, flock};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};
use tokio::time::sleep;

use super::exit::Failure;
use crate::client::parsed;

/// A thousand contexts take a quarter of this.
const FILE_BYTES_MOST: u64 = 1 << 20;

const NAME_CHARS_MOST: usize = 64;

/// Another change of the file takes milliseconds.
const LOCK_TRIES: u32 = 100;
const LOCK_AGAIN: Duration = Duration::from_millis(50);

/// A cluster, as `eldest context set` stores it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClusterContext {
    pub urls: Vec<String>,
    /// The cluster's identity. A node of another cluster refuses a call that names it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token_file: Option<PathBuf>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ca: Option<PathBuf>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cert: Option<PathBuf>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<PathBuf>,
}

impl ClusterContext {
    /// Whether all these addresses are addresses of this cluster.
    pub fn has_all(&self, urls: &[String]) -> bool {
        let own: Vec<String> = self.urls.iter().map(|url| normal(url)).collect();
        urls.iter().all(|url| own.contains(&normal(url)))
    }
}

/// An address as it is compared: as it is called.
fn normal(url: &str) -> String {
    parsed(url.trim()).map_or_else(|_| url.to_string(), |url| url.to_string())
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Contexts {
    /// The context of commands that name none.
    #[serde(default)]
    pub current: Option<String>,
    #[serde(default)]
    pub contexts: BTreeMap<String, ClusterContext>,
}

impl Contexts {
    /// Reads the file. There are no contexts if it does not exist, or if nothing says where it would be.
    pub fn read() -> Result<Contexts, Failure> {
        match place() {
            Some(path) => Contexts::of_file(&path),
            None => Ok(Contexts::default()),
        }
    }

    fn of_file(path: &Path) -> Result<Contexts, Failure> {
        let failed = Failure::file(path);
        let wrong = |why: String| Failure::Usage {
            what: format!(
                "the contexts in {} cannot be read: {why}; mend the file, or remove it",
                path.display()
            ),
        };
        // A pipe or a device could keep the command waiting.
        match fs::metadata(path) {
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
                return Ok(Contexts::default());
            }
            Err(error) => return Err(failed(error)),
            Ok(found) if !found.is_file() => return Err(wrong("it is not a file".to_string())),
            Ok(_) => {}
        }
        let mut text = String::new();
        File::open(path)
            .and_then(|file| file.take(FILE_BYTES_MOST + 1).read_to_string(&mut text))
            .map_err(&failed)?;
        if text.len() as u64 > FILE_BYTES_MOST {
            return Err(wrong(format!("it has more than {FILE_BYTES_MOST} bytes")));
        }
        serde_json::from_str(&text).map_err(|error| wrong(error.to_string()))
    }

    /// The context that is named, else the one in use, if there is one.
    pub fn chosen(&self, name: Option<&str>) -> Result<Option<&ClusterContext>, Failure> {
        name.or(self.current.as_deref()).map(|name| self.named(name)).transpose()
    }

    pub fn named(&self, name: &str) -> Result<&ClusterContext, Failure> {
        self.contexts.get(name).ok_or_else(|| {
            let names: Vec<&str> = self.contexts.keys().map(String::as_str).collect();
            let known = match names.is_empty() {
                true => "there are none; `eldest context set NAME --url URL` makes one".to_string(),
                false => format!("there are {}", names.join(", ")),
            };
            Failure::Usage { what: format!("no context {name:?}: {known}") }
        })
    }

    /// Changes the file. It is locked and read again: two commands may change it at the same time.
    pub async fn change<T>(change: impl FnOnce(&mut Contexts) -> Result<T, Failure>) -> Result<T, Failure> {
        let place = place().ok_or_else(|| Failure::Usage {
            what: "nothing says where contexts are kept: set HOME or ELDEST_CONTEXTS".to_string(),
        })?;
        // A link stays a link.
        let path =
            if place.is_symlink() { fs::canonicalize(&place).map_err(Failure::file(&place))? } else { place };
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        fs::DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(Failure::file(folder))?;
        let _lock = lock(&beside(&path, ".lock")).await?;
        let mut contexts = Contexts::of_file(&path)?;
        let done = change(&mut contexts)?;
        contexts.write(&path).map_err(Failure::file(&path))?;
        Ok(done)
    }

    /// Only a new file is written: another user may have put a link in its place, or one that everybody may read.
    fn write(&self, path: &Path) -> io::Result<()> {
        let new = beside(path, ".new");
        let text = serde_json::to_string_pretty(self).map_err(io::Error::from)?;
        match fs::remove_file(&new) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&new)?;
        file.write_all(text.as_bytes())?;
        file.write_all(b"\n")?;
        file.sync_all()?;
        fs::rename(&new, path)
    }
}

/// The path with this at its end.
fn beside(path: &Path, end: &str) -> PathBuf {
    let mut longer = path.as_os_str().to_owned();
    longer.push(end);
    PathBuf::from(longer)
}

async fn lock(path: &Path) -> Result<File, Failure> {
    let failed = Failure::file(path);
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(false).mode(0o600);
    // A pipe would keep the command waiting.
    options.custom_flags((OFlags::NONBLOCK | OFlags::NOFOLLOW).bits().cast_signed());
    let file = options.open(path).map_err(&failed)?;
    for _ in 0..LOCK_TRIES {
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return Ok(file),
            Err(Errno::WOULDBLOCK) => sleep(LOCK_AGAIN).await,
            Err(error) => return Err(failed(error.into())),
        }
    }
    Err(Failure::NotNow { what: "another command is changing the contexts; try again".to_string() })
}

/// The file that `ELDEST_CONTEXTS` names, else `eldest/contexts.json` among the user's settings.
fn place() -> Option<PathBuf> {
    let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let settings = || set("XDG_CONFIG_HOME").or_else(|| Some(set("HOME")?.join(".config")));
    set("ELDEST_CONTEXTS").or_else(|| Some(settings()?.join("eldest").join("contexts.json")))
}

/// The name of a context, which has to be typed.
pub fn context_name(text: &str) -> Result<String, String> {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    match text.chars().all(fits) && (1..=NAME_CHARS_MOST).contains(&text.len()) {
        true => Ok(text.to_string()),
        false => Err(format!("use 1 to {NAME_CHARS_MOST} letters, digits, dots, hyphens or underscores")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs a test with a new folder.
    fn in_folder<T>(name: &str, test: impl FnOnce(&Path) -> T) -> T {
        let folder = std::env::temp_dir().join(format!("eldest-contexts-{}-{name}", std::process::id()));
        fs::create_dir(&folder).expect("a folder");
        let done = test(&folder);
        fs::remove_dir_all(&folder).expect("removed");
        done
    }

    fn of(name: &str, text: &str) -> Result<Contexts, String> {
        in_folder(name, |folder| {
            let path = folder.join("contexts.json");
            fs::write(&path, text).expect("written");
            Contexts::of_file(&path).map_err(|failure| failure.to_string())
        })
    }

    #[test]
    fn addresses_are_compared_as_a_set() {
        let context =
            ClusterContext { urls: vec!["http://N1:9000/".into(), "n2".into()], ..Default::default() };
        let all =
            |urls: &[&str]| context.has_all(&urls.iter().map(|url| url.to_string()).collect::<Vec<_>>());
        assert!(all(&["n1:9000"]) && all(&["http://n2:9000", "http://n1:9000/"]));
        assert!(!all(&["n1:9000", "n3:9000"]));
        assert!(!all(&["https://n1:9000"]), "it may be another server");
    }

    #[test]
    fn a_wrong_file_is_told_with_its_place() {
        let told = of("type", "{\"current\": 7}").expect_err("a number");
        assert!(told.contains("contexts.json cannot be read: invalid type"), "{told}");
        let told =
            of("field", r#"{"contexts":{"a":{"urls":[],"token_fil":"x"}}}"#).expect_err("a typing error");
        assert!(told.contains("unknown field `token_fil`"), "{told}");
        let told = Contexts::of_file(Path::new("/dev/null")).expect_err("a device").to_string();
        assert!(told.contains("it is not a file"), "{told}");
        assert_eq!(Contexts::of_file(Path::new("/no/such/file")).ok(), Some(Contexts::default()));
    }

    #[test]
    fn the_named_one_is_chosen_before_the_one_in_use() {
        let contexts =
            of("chosen", r#"{"current":"a","contexts":{"a":{"urls":["n1"]},"b":{"urls":["n2"]}}}"#);
        let contexts = contexts.expect("valid");
        let first = |name| contexts.chosen(name).expect("it exists").map(|context| context.urls[0].clone());
        assert_eq!((first(None).as_deref(), first(Some("b")).as_deref()), (Some("n1"), Some("n2")));
        let told = contexts.chosen(Some("c")).expect_err("unknown").to_string();
        assert_eq!(told, "no context \"c\": there are a, b");
        assert_eq!(Contexts::default().chosen(None).ok(), Some(None));
    }

    #[test]
    fn a_file_is_replaced_as_a_whole_and_only_its_owner_may_read_it() {
        use std::os::unix::fs::PermissionsExt;
        in_folder("whole", |folder| {
            let path = folder.join("contexts.json");
            let contexts = Contexts { current: Some("a".into()), ..Contexts::default() };
            contexts.write(&path).expect("written");
            assert_eq!(Contexts::of_file(&path).expect("valid"), contexts);
            assert_eq!(fs::metadata(&path).expect("there").permissions().mode() & 0o777, 0o600);
            assert_eq!(fs::read_dir(folder).expect("a folder").count(), 1);
        });
    }

    #[test]
    fn names_can_be_typed() {
        assert!(context_name("prod-eu_1.a").is_ok());
        for wrong in ["", "a b", "ü", "a/b", &"x".repeat(65)] {
            assert!(context_name(wrong).is_err(), "{wrong}");
        }
    }
}
