//! The renewal of certificates and secrets while the node runs. Their files are checked regularly, and on SIGHUP.
//!
//! New contents apply to new connections and new proofs; nothing that is open is closed. A wrong file changes
//! nothing: the earlier contents stay in use, and the log and the status say what is wrong.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use eldest_tls::{Facts, NodeTls, TlsError};
use tokio::signal::unix::Signal;
use tokio::time::{MissedTickBehavior, interval};

use super::setup::secrets;
use crate::config::{ClusterSecrets, Config, check_key_file, cluster_secrets};
use crate::driver::Setup;

/// The interval of checks. Certificate and key are two files. At worst they are read between the two writes, and a
/// few seconds later both are there.
const LOOK_EVERY: Duration = Duration::from_secs(3);

/// An expiry within this time is reported, unless the certificate was never valid for much longer.
const SOON_SECONDS: i64 = 14 * SECONDS_A_DAY;
const SOON_SHARE: i64 = 5;
const SECONDS_A_DAY: i64 = 24 * 60 * 60;

pub struct Renewal {
    setup: Arc<Setup>,
    secret_file: Option<PathBuf>,
    /// The secrets that are in use.
    secret: Option<Texts>,
}

/// The secret, and the other one that is also accepted.
type Texts = (String, Option<String>);

impl Renewal {
    pub fn new(setup: Arc<Setup>, config: &Config) -> Renewal {
        let (secret_file, secret) = (config.secret_file.clone(), config.secret.as_ref().map(texts));
        Renewal { setup, secret_file, secret }
    }

    /// Runs for as long as the node does.
    pub async fn run(mut self, mut asked: Signal) {
        let mut ticks = interval(LOOK_EVERY);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                _ = ticks.tick() => {}
                _ = asked.recv() => tracing::info!("checking certificates and secrets (SIGHUP)"),
            }
            // The files may be on any file system, and the runtime's threads have calls to answer.
            let Ok(renewal) = tokio::task::spawn_blocking(move || self.look()).await else {
                return;
            };
            self = renewal;
        }
    }

    fn look(mut self) -> Renewal {
        self.look_at_certificates();
        self.look_at_secret();
        self
    }

    fn look_at_certificates(&self) {
        let Some(tls) = &self.setup.tls else {
            return;
        };
        let wrong = match reload(&tls.certificates) {
            Ok(false) => None,
            Ok(true) => {
                tracing::info!(names = ?tls.certificates.facts().names(), "certificates reloaded");
                None
            }
            Err(why) => Some(format!("{why}; the previous certificates stay in use")),
        };
        self.setup.notices.set("certificates", wrong);
        self.setup.notices.set("expiry", expiry(&tls.certificates.facts(), now_seconds()));
    }

    fn look_at_secret(&mut self) {
        let (Some(file), Some(used)) = (&self.secret_file, &self.setup.secret) else {
            return;
        };
        let wrong = match cluster_secrets(file) {
            Ok(read) => {
                let text = Some(texts(&read));
                if text != self.secret {
                    self.secret = text;
                    let (first, other) = secrets(&read);
                    tracing::info!(secrets = 1 + usize::from(other.is_some()), "cluster secret reloaded");
                    used.replace(first, other);
                }
                None
            }
            Err(wrong) => Some(format!(
                "the cluster secret's file {}: {wrong}; the previous secret stays in use",
                file.display()
            )),
        };
        self.setup.notices.set("secret", wrong);
    }
}

/// Reads the files again. Returns whether they have changed, or why they are not used.
fn reload(certificates: &NodeTls) -> Result<bool, String> {
    check_key_file(certificates.key_file()).map_err(|wrong| wrong.to_string())?;
    let said = |errors: Vec<TlsError>| errors.iter().map(TlsError::to_string).collect::<Vec<_>>().join("; ");
    certificates.reload().map_err(said)
}

fn texts(secrets: &ClusterSecrets) -> Texts {
    (secrets.first.expose().to_string(), secrets.other.as_ref().map(|other| other.expose().to_string()))
}

/// The remark on a certificate that expires soon or has expired.
fn expiry(facts: &Facts, now: i64) -> Option<String> {
    let left = facts.not_after - now;
    let soon = SOON_SECONDS.min((facts.not_after - facts.not_before) / SOON_SHARE);
    if now < facts.not_before {
        Some(
            "this node's certificate is not valid yet, or its clock is wrong: the other nodes reject it"
                .to_string(),
        )
    } else if left < 0 {
        Some(
            "this node's certificate has expired, or its clock is wrong: the other nodes reject it"
                .to_string(),
        )
    } else if left < SECONDS_A_DAY.min(soon) {
        Some(format!("this node's certificate expires in {} hours: renew it", left / 3600))
    } else if left < soon {
        Some(format!("this node's certificate expires in {} days: renew it", left / SECONDS_A_DAY))
    } else {
        None
    }
}

fn now_seconds() -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(now.as_secs()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_end_is_told_of_in_time() {
        let year = Facts { not_before: 0, not_after: 365 * SECONDS_A_DAY, ..Facts::default() };
        let says = |facts: &Facts, now: i64| expiry(facts, now).unwrap_or_default();
        assert_eq!(says(&year, 351 * SECONDS_A_DAY), "");
        assert_eq!(says(&year, 352 * SECONDS_A_DAY), "this node's certificate expires in 13 days: renew it");
        assert_eq!(
            says(&year, 365 * SECONDS_A_DAY - 7200),
            "this node's certificate expires in 2 hours: renew it"
        );
        assert!(says(&year, 365 * SECONDS_A_DAY + 1).contains("has expired"));
        assert!(says(&year, -1).contains("not valid yet"));
        let day = Facts { not_before: 0, not_after: SECONDS_A_DAY, ..Facts::default() };
        assert_eq!(says(&day, SECONDS_A_DAY / 2), "");
        assert!(says(&day, SECONDS_A_DAY * 9 / 10).contains("2 hours"));
    }
}
