//! The place of a development cluster: the addresses of its nodes, its folder and its topology file.

use std::fs;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::error::DevError;

/// The port of every node if each node has its own address.
const PORT: u16 = 9000;

/// More processes than this on one machine show nothing new.
pub const NODES_MAX: u32 = 9;

const NODES_DEFAULT: u32 = 3;

const CLUSTER: &str = "dev";

const TOPOLOGY: &str = "topology.json";

/// The number of names that are tried for a temporary folder. All of them are taken only if another user takes them
/// on purpose.
const FOLDERS_TRIED: u32 = 100;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Topology {
    cluster: String,
    clusters: Vec<Entry>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Entry {
    name: String,
    ip: IpAddr,
    port: u16,
    id: u32,
}

#[derive(Debug)]
pub struct DevPlace {
    pub folder: PathBuf,
    /// The folder was made for this run, and is removed after it.
    pub temporary: bool,
    pub addresses: Vec<SocketAddr>,
}

impl DevPlace {
    /// Makes the folder and writes the topology. The addresses are free at this moment.
    pub fn prepare(
        nodes: Option<u32>,
        data: Option<&Path>,
        keep: bool,
        base_port: Option<u16>,
    ) -> Result<DevPlace, DevError> {
        let (folder, temporary) = match data {
            Some(folder) => (existing(folder)?, false),
            None => (fresh()?, !keep),
        };
        let place = addresses_for(&folder, nodes, base_port).map(|addresses| DevPlace {
            folder: folder.clone(),
            temporary,
            addresses,
        });
        if place.is_err() && data.is_none() {
            // The folder was made a moment ago, and is empty.
            let _ = fs::remove_dir(&folder);
        }
        let place = place?;
        place.write_topology()?;
        Ok(place)
    }

    pub fn topology(&self) -> PathBuf {
        self.folder.join(TOPOLOGY)
    }

    pub fn data_of(&self, id: u32) -> PathBuf {
        self.folder.join(name_of(id))
    }

    pub fn urls(&self) -> Vec<String> {
        self.addresses.iter().map(|address| format!("http://{address}")).collect()
    }

    pub fn remove_if_temporary(&self) -> Result<(), DevError> {
        if self.temporary {
            fs::remove_dir_all(&self.folder).map_err(DevError::file(&self.folder))
        } else {
            Ok(())
        }
    }

    fn write_topology(&self) -> Result<(), DevError> {
        let entry = |(address, id): (&SocketAddr, u32)| Entry {
            name: name_of(id),
            ip: address.ip(),
            port: address.port(),
            id,
        };
        let topology = Topology {
            cluster: CLUSTER.to_string(),
            clusters: self.addresses.iter().zip(1..).map(entry).collect(),
        };
        let mut text = serde_json::to_string_pretty(&topology).expect("names and numbers always serialize");
        text.push('\n');
        fs::write(self.topology(), text).map_err(DevError::file(self.topology()))
    }
}

pub fn name_of(id: u32) -> String {
    format!("node-{id}")
}

fn addresses_for(
    folder: &Path,
    nodes: Option<u32>,
    base_port: Option<u16>,
) -> Result<Vec<SocketAddr>, DevError> {
    let formed = formed_with(folder)?;
    let nodes = match (nodes, formed) {
        (Some(nodes), Some(formed)) if nodes != formed => {
            return Err(DevError::OtherSize { folder: folder.to_path_buf(), formed });
        }
        (nodes, formed) => nodes.or(formed).unwrap_or(NODES_DEFAULT),
    };
    free_addresses(nodes, base_port)
}

/// The number of nodes of the cluster in this folder. Returns `None` if there is no cluster in it.
fn formed_with(folder: &Path) -> Result<Option<u32>, DevError> {
    let path = folder.join(TOPOLOGY);
    let text = match fs::read_to_string(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        read => read.map_err(DevError::file(&path))?,
    };
    let topology: Topology = serde_json::from_str(&text).map_err(|_| DevError::ForeignFolder { path })?;
    Ok(Some(topology.clusters.len() as u32))
}

fn free_addresses(nodes: u32, base_port: Option<u16>) -> Result<Vec<SocketAddr>, DevError> {
    let own_hosts = base_port.is_none() && has_more_loopback_addresses();
    let address = |place: u32| -> Result<SocketAddr, DevError> {
        if own_hosts {
            return Ok(SocketAddr::new(Ipv4Addr::new(127, 0, 0, place as u8 + 1).into(), PORT));
        }
        let base = base_port.unwrap_or(PORT);
        let port = base.checked_add(place as u16).ok_or(DevError::NoSuchPort { base, nodes })?;
        Ok(SocketAddr::new(Ipv4Addr::LOCALHOST.into(), port))
    };
    let addresses: Vec<SocketAddr> = (0..nodes).map(address).collect::<Result<_, _>>()?;
    for address in &addresses {
        TcpListener::bind(address).map_err(|error| DevError::Taken { address: *address, error })?;
    }
    Ok(addresses)
}

/// Whether 127.0.0.2 can be used. Linux answers on all of 127.0.0.0/8; other systems do so only if the addresses were
/// added.
fn has_more_loopback_addresses() -> bool {
    TcpListener::bind((Ipv4Addr::new(127, 0, 0, 2), 0)).is_ok()
}

fn existing(folder: &Path) -> Result<PathBuf, DevError> {
    fs::create_dir_all(folder).map_err(DevError::file(folder))?;
    folder.canonicalize().map_err(DevError::file(folder))
}

fn fresh() -> Result<PathBuf, DevError> {
    let base = std::env::temp_dir();
    for attempt in 0..FOLDERS_TRIED {
        let folder = base.join(format!("eldest-dev-{}-{attempt}", std::process::id()));
        match fs::create_dir(&folder) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            made => return made.map(|()| folder.clone()).map_err(DevError::file(folder)),
        }
    }
    Err(DevError::file(base)(io::ErrorKind::AlreadyExists.into()))
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    /// The listeners that claim ports. Each stands for ten ports, for as long as this process lives.
    static CLAIMED: Mutex<Vec<TcpListener>> = Mutex::new(Vec::new());

    /// A port whose following ports are free too. Tests search for ports at the same time, so the last one of ten is
    /// kept open: it tells all others, in this process and in other processes, to leave the ten alone. The kernel
    /// gives none of these ports to a process that asks for any port.
    fn base_port() -> u16 {
        let bind = |port| TcpListener::bind((Ipv4Addr::LOCALHOST, port));
        let claimed = |base: &u16| {
            let claim = bind(base + 9);
            let is_ours = claim.is_ok();
            CLAIMED.lock().expect("no claim panics").extend(claim);
            is_ours && (0..3).all(|more| bind(base + more).is_ok())
        };
        (20_000..30_000).step_by(10).find(claimed).expect("free ports")
    }

    #[test]
    fn a_temporary_place_is_made_and_removed() {
        let base = base_port();
        let place = DevPlace::prepare(None, None, false, Some(base)).expect("a place");
        assert_eq!(place.addresses.len(), 3);
        assert_eq!(place.urls()[1], format!("http://127.0.0.1:{}", base + 1));
        assert!(place.topology().exists());
        place.remove_if_temporary().expect("removed");
        assert!(!place.folder.exists());
    }

    #[test]
    fn a_kept_folder_remembers_its_size() {
        let folder = fresh().expect("a folder");
        let base = base_port();
        let prepare = |nodes| DevPlace::prepare(nodes, Some(&folder), false, Some(base));
        assert_eq!(prepare(Some(2)).expect("new").addresses.len(), 2);
        assert_eq!(prepare(None).expect("again").addresses.len(), 2);
        assert!(matches!(prepare(Some(3)), Err(DevError::OtherSize { formed: 2, .. })));
        fs::write(folder.join(TOPOLOGY), "{}").expect("written");
        assert!(matches!(prepare(None), Err(DevError::ForeignFolder { .. })));
        fs::remove_dir_all(folder).expect("removed");
    }

    #[test]
    fn a_taken_port_is_named_and_nothing_is_left() {
        let taken = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
        let address = taken.local_addr().expect("an address");
        let refused = DevPlace::prepare(Some(1), None, false, Some(address.port()));
        assert!(matches!(refused, Err(DevError::Taken { address: found, .. }) if found == address));
        assert!(matches!(free_addresses(2, Some(u16::MAX)), Err(DevError::NoSuchPort { .. })));
    }
}
