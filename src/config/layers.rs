//! The layers. Figment merges them, and remembers the source of each value.

use std::collections::BTreeMap;

use figment::providers::{Format, Toml};
use figment::value::{Dict, Map, Value};
use figment::{Figment, Metadata, Profile, Provider};
use serde::Serialize;
use serde_json::Value as Json;

use crate::config::files::File;
use crate::config::keys::sift;
use crate::config::mistakes::Findings;
use crate::config::place::{ChosenNode, Source};
use crate::config::raw::{Raw, RawTable};
use crate::config::wrong::{one_line, quoted};
use crate::config::{SettingPlace, Spot, WrongFile, WrongValue};

/// The merged values of all layers.
pub struct Merged {
    pub raw: Raw,
    figment: Figment,
    sources: BTreeMap<&'static str, Source>,
}

pub fn merge(config: Option<File>, env: RawTable, flags: &Flags, findings: &mut Findings) -> Merged {
    let known = Raw::default().table();
    let mut layers = vec![(Source::Defaults, known.clone())];
    if let Some(file) = config {
        let source = Source::File(file.path.clone());
        let values = parse(file, findings);
        layers.push((source.clone(), sift(values, &known, &source, findings)));
    }
    layers.push((Source::Environment, env));
    layers.push((Source::Flags, spoken(flags)));
    let figment = layers.iter().map(Layer).fold(Figment::new(), Figment::merge);
    let raw = figment.extract().expect("filtered layers have the keys and the types of the defaults");
    let sources = layers.into_iter().map(|(source, _)| (kind(&source), source)).collect();
    Merged { raw, figment, sources }
}

impl Merged {
    /// The source of the value of a key.
    pub fn source(&self, path: &str) -> Source {
        let metadata = self.figment.find_metadata(path);
        let source = metadata.and_then(|metadata| self.sources.get(metadata.name.as_ref()));
        source.cloned().unwrap_or(Source::Defaults)
    }

    pub fn place(&self, path: &str) -> SettingPlace {
        self.source(path).at(path)
    }

    /// Whether the value of a key is what the operator meant.
    pub fn is_trusted(&self, path: &str, findings: &Findings) -> bool {
        findings.trusts(&self.source(path), path)
    }
}

fn parse(file: File, findings: &mut Findings) -> RawTable {
    let place = Source::File(file.path).whole();
    let text = match file.text {
        Ok(text) => text,
        Err(wrong) => {
            findings.spoil(place, wrong);
            return RawTable::new();
        }
    };
    Toml::from_str::<RawTable>(&text).unwrap_or_else(|error| {
        let spot = error.span().map(|span| Spot::of(&text, span.start));
        // The error's own `Display` is not used: it quotes the line, and the line may contain a secret.
        let why = one_line(error.message());
        findings.spoil(SettingPlace { spot, ..place }, WrongFile::Syntax { why });
        RawTable::new()
    })
}

/// The flags that were given.
fn spoken(flags: &Flags) -> RawTable {
    let mut json = serde_json::to_value(flags).expect("strings always serialize");
    remove_nulls(&mut json);
    json.as_object().cloned().unwrap_or_default()
}

fn remove_nulls(json: &mut Json) {
    if let Json::Object(table) = json {
        table.retain(|_, value| !value.is_null());
        table.values_mut().for_each(remove_nulls);
    }
}

fn kind(source: &Source) -> &'static str {
    match source {
        Source::Defaults => "defaults",
        Source::File(_) => "file",
        Source::Environment => "environment",
        Source::Flags => "flags",
    }
}

struct Layer<'a>(&'a (Source, RawTable));

impl Provider for Layer<'_> {
    fn metadata(&self) -> Metadata {
        Metadata::named(kind(&self.0.0))
    }

    fn data(&self) -> figment::Result<Map<Profile, Dict>> {
        let values = Value::serialize(&self.0.1)?.into_dict().unwrap_or_default();
        Ok(Map::from([(Profile::Default, values)]))
    }
}

// The command line's layer: the few settings that differ from node to node or from start to start.
//
// There is no flag for a secret itself: every user of the machine can see the arguments of a process.

/// The flags of the command line. An absent flag leaves the decision to lower layers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Flags {
    /// The node of the topology that this one is. It overrules the topology's own `node`. It is no setting, so no
    /// file has it.
    #[serde(skip)]
    pub node: Option<u64>,
    pub data: Option<String>,
    pub listen: Option<String>,
    pub insecure: Option<bool>,
    pub anonymous: Option<String>,
    pub cluster_secret_file: Option<String>,
    pub admin_token_file: Option<String>,
    pub log: LogFlags,
}

/// The flags `--log-level` and `--log-format`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct LogFlags {
    pub level: Option<String>,
    pub format: Option<String>,
}

impl Flags {
    pub(super) fn chosen_node(&self) -> Option<ChosenNode> {
        self.node.map(|id| ChosenNode { id, source: Source::Flags })
    }
}

// Settings whose value is one of a few words.

/// The choice that the word names. Returns `None` after a mistake.
pub fn choice<T: Copy>(
    path: &str,
    found: &str,
    choices: &[(&'static str, T)],
    settings: &Merged,
    findings: &mut Findings,
) -> Option<T> {
    let chosen = choices.iter().find(|(name, _)| *name == found).map(|(_, chosen)| *chosen);
    if chosen.is_none() {
        let choices = choices.iter().map(|(name, _)| *name).collect();
        findings.spoil(settings.place(path), WrongValue::NotOneOf { found: quoted(found), choices });
    }
    chosen
}
