//! The head of an envelope states its sender, and the cluster that the sender belongs to.

use super::fields::WireError;
use super::fields::{FieldWriter, Fields};
use crate::protocol::{Envelope, Message};
use crate::types::{Boot, ClusterId, Format, Incarnation, NodeId};

/// The settings that two nodes must agree on before their messages mean anything to each other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClusterHead {
    pub name: String,
    pub mode: String,
    /// A digest of mode and timings. Messages of a node with other settings are refused (`http/peer`).
    pub settings: u64,
    /// A digest of the ids in the topology file, without names and addresses: a dead node may get a new address. It is only compared if no
    /// log has the members of the cluster (P43), and if both nodes state it.
    pub ids: Option<u64>,
    /// The sender's address, as it states it: for a node that does not know yet that it is a member.
    pub at: String,
}

impl ClusterHead {
    pub fn encode(&self) -> String {
        FieldWriter::new(&self.name)
            .put("mode", &self.mode)
            .put("settings", format_args!("{:016x}", self.settings))
            .put("ids", format_args!("{:016x}", self.ids.unwrap_or_default()))
            .put("at", &self.at)
            .done()
    }

    pub fn decode(text: &str) -> Result<ClusterHead, WireError> {
        let fields = Fields::parse(text);
        let mode = fields.get("mode")?.to_string();
        let settings = fields.hex("settings")?;
        let ids = fields.find("ids").map(|_| fields.hex("ids")).transpose()?;
        let at = fields.find("at").unwrap_or_default().to_string();
        Ok(ClusterHead { name: fields.name.to_string(), mode, settings, ids, at })
    }
}

/// An envelope without its message. `boot` tells processes of a node apart, `incarnation` its disks (P10); `admitted` says
/// whether the sender's log has counted its disk; `format` is the newest format of records that the sender reads (P23).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sender {
    pub from: NodeId,
    pub to: NodeId,
    pub boot: Boot,
    pub incarnation: Incarnation,
    pub admitted: bool,
    /// The cluster of the sender's log (P44).
    pub cluster: ClusterId,
    pub format: Format,
}

impl Sender {
    pub fn of(envelope: &Envelope) -> Sender {
        let Envelope { from, to, boot, incarnation, admitted, cluster, format, .. } = *envelope;
        Sender { from, to, boot, incarnation, admitted, cluster, format }
    }

    pub fn says(self, message: Message) -> Envelope {
        let Sender { from, to, boot, incarnation, admitted, cluster, format } = self;
        Envelope { from, to, boot, incarnation, admitted, cluster, format, message }
    }

    pub fn encode(&self) -> String {
        FieldWriter::new(&self.from.0.to_string())
            .put("to", self.to.0)
            .put("boot", format_args!("{:x}", self.boot.0))
            .put("incarnation", format_args!("{:x}", self.incarnation.0))
            .flag("admitted", self.admitted)
            .put("cluster", self.cluster)
            .put("format", self.format.0)
            .done()
    }

    pub fn decode(text: &str) -> Result<Sender, WireError> {
        let fields = Fields::parse(text);
        let from = fields.name.parse().map_err(|_| super::fields::bad("from", fields.name))?;
        Ok(Sender {
            from: NodeId(from),
            to: NodeId(fields.number("to")?),
            boot: Boot(fields.hex("boot")?),
            incarnation: Incarnation(fields.hex("incarnation")?),
            admitted: fields.flag("admitted")?,
            cluster: fields.cluster("cluster")?,
            format: Format(fields.number("format")?),
        })
    }
}
