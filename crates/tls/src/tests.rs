//! Certificates as a CA issues them, right and wrong ones.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair, SanType,
    date_time_ymd,
};
use rustls::pki_types::{ServerName, UnixTime};
use rustls::{ClientConfig, ClientConnection, ServerConnection};

use crate::{
    Caller, ClientFiles, Facts, Kind, NodeFiles, NodeName, NodeTls, Rules, TlsError, certificates, explain,
};

/// A folder for one test, which is removed at its end.
struct Folder(PathBuf);

impl Folder {
    fn new(test: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("eldest-tls-{}-{test}", std::process::id()));
        std::fs::create_dir_all(&path).expect("a folder");
        Folder(path)
    }

    fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.0.join(name);
        std::fs::write(&path, text).expect("a file");
        path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

struct Ca {
    pem: String,
    issuer: Issuer<'static, KeyPair>,
}

fn ca(name: &str) -> Ca {
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.distinguished_name.push(DnType::CommonName, name);
    let key = KeyPair::generate().expect("a key");
    let pem = params.self_signed(&key).expect("a certificate").pem();
    Ca { pem, issuer: Issuer::new(params, key) }
}

/// A certificate and its key, in PEM.
fn issued(ca: &Ca, uri: &str) -> (String, String) {
    let mut params =
        CertificateParams::new(["127.0.0.1".to_string(), "n1.example".to_string()]).expect("names");
    params.subject_alt_names.push(SanType::URI(uri.try_into().expect("a URI")));
    params.distinguished_name.push(DnType::CommonName, "node one");
    params.extended_key_usages =
        vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
    (params.not_before, params.not_after) = (date_time_ymd(2020, 2, 29), date_time_ymd(2051, 3, 1));
    let key = KeyPair::generate().expect("a key");
    (params.signed_by(&key, &ca.issuer).expect("a certificate").pem(), key.serialize_pem())
}

fn rules() -> Rules {
    Rules { cluster: "c".to_string(), node: 1, client_certs_required: false }
}

fn files(folder: &Folder, ca: &Ca, own: &(String, String)) -> NodeFiles {
    files_of("n", folder, ca, own)
}

/// Writes the files of a node, under this name.
fn files_of(name: &str, folder: &Folder, ca: &Ca, (cert, key): &(String, String)) -> NodeFiles {
    NodeFiles {
        cert: folder.write(&format!("{name}.crt"), cert),
        key: folder.write(&format!("{name}.key"), key),
        ca: folder.write(&format!("{name}-ca.crt"), &ca.pem),
        client_ca: None,
    }
}

fn kinds(result: Result<NodeTls, Vec<TlsError>>) -> Vec<Kind> {
    result.expect_err("there are mistakes").iter().map(|error| error.kind).collect()
}

fn now() -> UnixTime {
    UnixTime::since_unix_epoch(SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970"))
}

#[test]
fn a_certificate_says_who_and_until_when() {
    let (folder, ca) = (Folder::new("facts"), ca("the CA"));
    let (cert, _) = issued(&ca, "eldest://c/node/1");
    let read = certificates(&folder.write("n.crt", &cert)).expect("one");
    let facts = Facts::read(&read[0]).expect("a certificate");
    assert_eq!((facts.subject.as_str(), facts.issuer.as_str()), ("node one", "the CA"));
    // The expected values are those of `date -u +%s`. The later one is in the longer of the two notations.
    assert_eq!((facts.not_before, facts.not_after), (1_582_934_400, 2_561_241_600));
    assert_eq!(facts.names(), ["eldest://c/node/1", "n1.example", "127.0.0.1"]);
    assert_eq!([facts.days_left(2_561_241_600 - 86_400), facts.days_left(2_561_241_601)], [1, -1]);
}

/// No damaged certificate makes the reader panic, and a truncated certificate is not accepted.
#[test]
fn a_damaged_certificate_is_none() {
    let (folder, ca) = (Folder::new("damaged"), ca("the CA"));
    let (cert, _) = issued(&ca, "eldest://c/node/1");
    let read = certificates(&folder.write("n.crt", &cert)).expect("one");
    for end in 0..read[0].len() {
        assert_eq!(Facts::read(&read[0][..end]), None, "cut at {end}");
    }
    for at in 0..read[0].len() {
        for bit in 0..8 {
            let mut bent = read[0].to_vec();
            bent[at] ^= 1 << bit;
            let _ = Facts::read(&bent);
            let _ = NodeName::all(&bent.into());
        }
    }
}

#[test]
fn names_have_one_spelling() {
    let name = NodeName { cluster: "c-1".to_string(), id: 7 };
    assert_eq!(NodeName::parse("eldest://c-1/node/7"), Some(name));
    for wrong in [
        "",
        "eldest://c/node/",
        "eldest://c/node/07",
        "eldest://c/node/+7",
        "eldest://a/node/b/node/7",
        "ELDEST://c/node/7",
        "eldest://c/node/4294967296",
    ] {
        assert_eq!(NodeName::parse(wrong), None, "{wrong}");
    }
}

#[test]
fn every_wrong_file_is_named() {
    let (folder, ca) = (Folder::new("wrong"), ca("the CA"));
    let right = issued(&ca, "eldest://c/node/1");
    let good = files(&folder, &ca, &right);
    assert!(NodeTls::load(good.clone(), rules()).is_ok());
    let missing = NodeFiles { cert: "/no/such".into(), ca: "/no/such".into(), ..good.clone() };
    assert_eq!(kinds(NodeTls::load(missing, rules())), [Kind::Certificate, Kind::Ca]);
    let empty = folder.write("empty", "");
    let nothing = NodeFiles { cert: empty.clone(), ca: empty, ..good.clone() };
    assert_eq!(kinds(NodeTls::load(nothing, rules())), [Kind::Certificate, Kind::Ca]);
    let (_, other_key) = issued(&ca, "eldest://c/node/1");
    let other_key = NodeFiles { key: folder.write("other.key", &other_key), ..good.clone() };
    assert_eq!(kinds(NodeTls::load(other_key, rules())), [Kind::Key]);
    for not_mine in ["eldest://c/node/2", "eldest://d/node/1"] {
        let (cert, key) = issued(&ca, not_mine);
        let other = NodeFiles {
            cert: folder.write("other.crt", &cert),
            key: folder.write("other.key", &key),
            ..good.clone()
        };
        let wrong = NodeTls::load(other, rules()).expect_err("another's");
        assert!(wrong[0].why.contains(not_mine) && wrong[0].why.contains("eldest://c/node/1"), "{wrong:?}");
    }
}

#[test]
fn a_bad_file_changes_nothing_and_a_good_one_does() {
    let (folder, ca) = (Folder::new("reload"), ca("the CA"));
    let first = issued(&ca, "eldest://c/node/1");
    let tls = NodeTls::load(files(&folder, &ca, &first), rules()).expect("loaded");
    let before = tls.server();
    assert_eq!(tls.reload(), Ok(false));
    folder.write("n.crt", "nonsense");
    assert!(tls.reload().is_err());
    assert!(Arc::ptr_eq(&before, &tls.server()), "what was there before stays in use");
    files(&folder, &ca, &issued(&ca, "eldest://c/node/1"));
    assert_eq!(tls.reload(), Ok(true));
    assert!(!Arc::ptr_eq(&before, &tls.server()));
    assert_eq!(tls.reload(), Ok(false));
}

/// A CA that issues clients' certificates must not be able to name a node.
#[test]
fn the_clients_ca_names_no_nodes() {
    let (folder, nodes, clients) = (Folder::new("callers"), ca("of nodes"), ca("of clients"));
    let own = issued(&nodes, "eldest://c/node/1");
    let mut files = files(&folder, &nodes, &own);
    files.client_ca = Some(folder.write("clients.crt", &clients.pem));
    let tls = NodeTls::load(files, rules()).expect("loaded");
    let chain = |(cert, _): (String, String)| certificates(&folder.write("caller.crt", &cert)).expect("one");
    let of = |ca: &Ca, uri: &str| tls.caller(&chain(issued(ca, uri)), now());
    assert_eq!(of(&nodes, "eldest://c/node/2"), Caller { node: Some(2) });
    assert_eq!(of(&clients, "eldest://c/node/2"), Caller::default());
    assert_eq!(of(&nodes, "eldest://other/node/2"), Caller::default());
    assert_eq!(of(&nodes, "https://c/node/2"), Caller::default());
    assert_eq!(tls.caller(&[], now()), Caller::default());
}

/// Connects two ends in memory. Returns the result of the end that dials, and the caller that the other end has seen.
fn shake_hands(dialling: ClientConfig, answering: &NodeTls) -> (Result<(), String>, Caller) {
    let name = ServerName::try_from("127.0.0.1").expect("an address");
    let mut client = ClientConnection::new(Arc::new(dialling), name).expect("a client");
    let mut server = ServerConnection::new(answering.server()).expect("a server");
    // More rounds than a handshake has.
    for _ in 0..4 {
        let (mut to_server, mut to_client) = (Vec::new(), Vec::new());
        client.write_tls(&mut to_server).expect("memory takes all");
        server.read_tls(&mut to_server.as_slice()).expect("memory gives all");
        let judged = server.process_new_packets().map_err(|error| explain(&error).expect("of TLS"));
        server.write_tls(&mut to_client).expect("memory takes all");
        client.read_tls(&mut to_client.as_slice()).expect("memory gives all");
        let believed = client.process_new_packets().map_err(|error| explain(&error).expect("of TLS"));
        if let Some(why) = believed.err().or(judged.err()) {
            return (Err(why), Caller::default());
        }
    }
    (Ok(()), answering.caller(server.peer_certificates().unwrap_or_default(), now()))
}

/// Node 1 or 2, each with separate files.
fn node(folder: &Folder, ca: &Ca, id: u32) -> Arc<NodeTls> {
    let own = issued(ca, &format!("eldest://c/node/{id}"));
    Arc::new(
        NodeTls::load(files_of(&format!("n{id}"), folder, ca, &own), Rules { node: id, ..rules() })
            .expect("loaded"),
    )
}

#[test]
fn nodes_believe_each_other_by_name() {
    let (folder, ca, other) = (Folder::new("nodes"), ca("the CA"), self::ca("another CA"));
    let (one, two, stranger) = (node(&folder, &ca, 1), node(&folder, &ca, 2), node(&folder, &other, 3));
    assert_eq!(shake_hands(two.dialling(Some(1)), &one), (Ok(()), Caller { node: Some(2) }));
    assert_eq!(shake_hands(two.dialling(None), &one).0, Ok(()));
    let why = shake_hands(two.dialling(Some(3)), &one).0.expect_err("another node");
    assert!(why.contains("eldest://c/node/1") && why.contains("node 3"), "{why}");
    for (dials, answers) in [(&stranger, &one), (&one, &stranger)] {
        let why = shake_hands(dials.dialling(None), answers).0.expect_err("another CA");
        assert!(why.contains("CA"), "{why}");
    }
    assert!(shake_hands(ClientFiles::default().config().expect("nothing to read"), &one).0.is_err());
}

/// A client that was built once shows and accepts the certificates that the node's files have now.
#[test]
fn who_dials_goes_by_what_is_read_last() {
    let (folder, before, after) = (Folder::new("dials"), ca("before"), ca("after"));
    let (one, two) = (node(&folder, &before, 1), node(&folder, &after, 2));
    let dialling = one.dialling(None);
    assert!(shake_hands(dialling.clone(), &two).0.is_err());
    let renewed = issued(&after, "eldest://c/node/1");
    files_of("n1", &folder, &after, &renewed);
    assert_eq!(one.reload(), Ok(true));
    assert_eq!(shake_hands(dialling, &two), (Ok(()), Caller { node: Some(1) }));
}

#[test]
fn a_client_may_show_nothing_or_a_certificate_with_its_key() {
    let (folder, ca) = (Folder::new("client"), ca("the CA"));
    let (cert, key) = issued(&ca, "https://somebody");
    let both = folder.write("both.pem", &format!("{cert}{key}"));
    let path = |path: &Path| Some(path.to_path_buf());
    let has = |files: ClientFiles| files.config().map(|config| config.client_auth_cert_resolver.has_certs());
    assert_eq!(has(ClientFiles::default()), Ok(false));
    assert_eq!(has(ClientFiles { cert: path(&both), ..ClientFiles::default() }), Ok(true));
    let only = ClientFiles { cert: Some(folder.write("only.crt", &cert)), ..ClientFiles::default() };
    assert_eq!(has(only).map_err(|error| error.kind), Err(Kind::Key));
}
