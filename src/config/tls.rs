//! The table `[tls]`: whether a node uses TLS, and with which files. The check reads the files as a start would read
//! them.

use std::path::PathBuf;

use eldest_tls::{Kind, NodeFiles, NodeTls, Rules};

use super::layers::Merged;
use super::layers::choice;
use super::mistakes::Findings;
use super::secrets::{KEY_FILE, check_openness};
use super::topology::Topology;
use super::wrong::quoted;
use super::{ConfigRemark, TlsSettings, WrongAccess};

/// `None` means that TLS is off.
const MODES: [(&str, Option<Manner>); 4] = [
    ("off", None),
    ("accept", Some(Manner { takes_plain: true, dials: false })),
    ("prefer", Some(Manner { takes_plain: true, dials: true })),
    ("require", Some(Manner { takes_plain: false, dials: true })),
];

const CLIENT_CERTS: [(&str, bool); 2] = [("optional", false), ("required", true)];

const NEEDED: [&str; 3] = ["tls.cert_file", KEY_FILE, "tls.ca_file"];

/// The use of TLS by a node: whether it accepts callers without TLS, and whether it calls others by TLS.
#[derive(Clone, Copy)]
struct Manner {
    takes_plain: bool,
    dials: bool,
}

/// The TLS settings. Returns `None` if TLS is off, and after a mistake.
pub fn check(topology: Option<&Topology>, settings: &Merged, findings: &mut Findings) -> Option<TlsSettings> {
    let raw = &settings.raw.tls;
    let mode = choice("tls.mode", &raw.mode, &MODES, settings, findings);
    let required = choice("tls.client_certs", &raw.client_certs, &CLIENT_CERTS, settings, findings);
    let Some(Manner { takes_plain, dials }) = mode? else {
        if !raw.cert_file.is_empty() || !raw.key_file.is_empty() {
            findings.remark(ConfigRemark::TlsIsOff);
        }
        return None;
    };
    let files = files(settings, findings)?;
    let tls = TlsSettings { files, dials, takes_plain, client_certs_required: required? };
    if let Err(wrong) = check_openness(KEY_FILE, &tls.files.key, findings) {
        findings.spoil(settings.place(KEY_FILE), wrong);
    }
    let topology = topology?;
    let rules =
        Rules { cluster: topology.cluster.clone(), node: topology.me.0, client_certs_required: false };
    for error in NodeTls::load(tls.files.clone(), rules).err().into_iter().flatten() {
        let wrong = WrongAccess::Certificate { file: quoted(&error.path.to_string_lossy()), why: error.why };
        findings.spoil(settings.place(key(error.kind)), wrong);
    }
    Some(tls)
}

fn key(kind: Kind) -> &'static str {
    match kind {
        Kind::Certificate => "tls.cert_file",
        Kind::Key => KEY_FILE,
        Kind::Ca => "tls.ca_file",
        Kind::ClientCa => "tls.client_ca_file",
    }
}

/// The files. Returns `None` if one is missing.
fn files(settings: &Merged, findings: &mut Findings) -> Option<NodeFiles> {
    let raw = &settings.raw.tls;
    let mut complete = true;
    for (key, file) in NEEDED.into_iter().zip([&raw.cert_file, &raw.key_file, &raw.ca_file]) {
        if file.is_empty() {
            findings.spoil(settings.place(key), WrongAccess::NotGiven { needs: "tls.mode" });
            complete = false;
        }
    }
    let client_ca = Some(&raw.client_ca_file).filter(|file| !file.is_empty()).map(PathBuf::from);
    let path = |file: &String| PathBuf::from(file);
    complete.then(|| NodeFiles {
        cert: path(&raw.cert_file),
        key: path(&raw.key_file),
        ca: path(&raw.ca_file),
        client_ca,
    })
}
