//! The head of an envelope says who sends it, and in which cluster the sender believes itself to be.

use super::fields::WireError;
use super::fields::{FieldWriter, Fields};
use crate::protocol::{Envelope, Message};
use crate::types::{Boot, ClusterId, Format, Incarnation, NodeId};

/// What two nodes must agree on before anything that they say to each other means something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClusterHead {
    pub name: String,
    pub mode: String,
    /// A digest of mode and timings.
    pub settings: u64,
    /// A digest of the ids in the topology file, not of names and addresses: a dead node may get a new address. Compared only
    /// where no log says who belongs to the cluster (P43), and where both say it.
    pub ids: Option<u64>,
    /// Where the sender is to be called, by its own account: for a node that has not heard yet that it is a member.
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

/// An envelope without its message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sender {
    pub from: NodeId,
    pub to: NodeId,
    pub boot: Boot,
    pub incarnation: Incarnation,
    pub admitted: bool,
    /// Which cluster the sender's log is of (P44).
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
