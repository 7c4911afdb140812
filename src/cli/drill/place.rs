//! The cluster as it is before a drill.

use crate::cli::client::Target;
use crate::cli::exit::Failure;
use crate::cli::status::Cluster;
use crate::client::alike;

#[derive(Debug)]
pub struct Place {
    pub cluster: String,
    pub mode: String,
    /// The leader, who is to be taken away.
    pub id: u32,
    pub name: String,
    pub url: String,
    pub epoch: String,
    /// Every member that answers, at the address where it does.
    pub urls: Vec<String>,
}

impl Place {
    pub fn of(cluster: &Cluster, target: &Target) -> Result<Place, Failure> {
        let view = &cluster.view;
        let first = target.url.first().map_or("", String::as_str);
        let leads = view.role == "leader";
        let Some(leader) = view.members.iter().find(|member| leads && member.id == view.node.id) else {
            let what = "nobody leads, so there is nobody to take away; `eldest why` says more".to_string();
            return Err(Failure::NotNow { what });
        };
        let answers = |id: &u32| matches!(cluster.nodes.get(id), Some(Ok(_)));
        let left = view.members.iter().filter(|member| answers(&member.id) && member.id != leader.id).count();
        let needed = view.members.len() / 2 + 1;
        if left < needed && !view.is_available() {
            let what = format!(
                "without {} {left} of {} nodes would be left that answer here, and {needed} are needed; `eldest doctor` says more",
                leader.name,
                view.members.len()
            );
            return Err(Failure::NotNow { what });
        }
        let reached = view.members.iter().filter(|member| answers(&member.id));
        Ok(Place {
            cluster: view.cluster.clone(),
            mode: view.mode.clone(),
            id: leader.id,
            name: leader.name.clone(),
            url: alike(&leader.url, first),
            epoch: view.epoch.clone(),
            urls: reached.map(|member| alike(&member.url, first)).collect(),
        })
    }
}
