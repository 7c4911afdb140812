//! Who sends, and in which cluster it believes itself to be.

use super::error::WireError;
use super::fields::{Fields, Writer};
use crate::protocol::{Envelope, Message};
use crate::types::{Boot, Format, Incarnation, NodeId};

/// What two nodes must agree on before anything that they say to each other means something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClusterHead {
    pub name: String,
    pub mode: String,
    /// A digest of ids, mode and timings, not of names and addresses: a dead node may get a new address.
    pub settings: u64,
}

impl ClusterHead {
    pub fn encode(&self) -> String {
        Writer::new(&self.name)
            .put("mode", &self.mode)
            .put("settings", format_args!("{:016x}", self.settings))
            .done()
    }

    pub fn decode(text: &str) -> Result<ClusterHead, WireError> {
        let fields = Fields::parse(text);
        let mode = fields.get("mode")?.to_string();
        Ok(ClusterHead { name: fields.name.to_string(), mode, settings: fields.hex("settings")? })
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
    pub format: Format,
}

impl Sender {
    pub fn of(envelope: &Envelope) -> Sender {
        let Envelope { from, to, boot, incarnation, admitted, format, .. } = *envelope;
        Sender { from, to, boot, incarnation, admitted, format }
    }

    pub fn says(self, message: Message) -> Envelope {
        let Sender { from, to, boot, incarnation, admitted, format } = self;
        Envelope { from, to, boot, incarnation, admitted, format, message }
    }

    pub fn encode(&self) -> String {
        Writer::new(&self.from.0.to_string())
            .put("to", self.to.0)
            .put("boot", format_args!("{:x}", self.boot.0))
            .put("incarnation", format_args!("{:x}", self.incarnation.0))
            .flag("admitted", self.admitted)
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
            format: Format(fields.number("format")?),
        })
    }
}
