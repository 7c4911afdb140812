// Backups: the copies that nodes keep by themselves, one to take away, and how it is restored.

import { asked, get, metrics, send } from "./api.js";
import { cluster } from "./cluster.js";
import { ago, button, bytes, h, refresh, table } from "./dom.js";
import { span } from "./leases.js";
import { lacking, outcome } from "./orders.js";
import { mayOrder } from "./rights.js";

const EVERY = 5000;
const PATIENCE = 2500;
const DOWNLOAD_MOST = 600_000;
// Long after the browser has taken the file.
const FORGOTTEN_AFTER = 60_000;
// A copy counts as late when this many of them are missing.
const LATE = 3;

async function askAll() {
  const one = async (member) => {
    try { return [member, await get("/v1/diagnostics", { at: member.url, patience: PATIENCE })]; } catch { return [member, null]; }
  };
  return Promise.all(cluster.status.members.map(one));
}

// Its place, and the size of its last copy, are in the metrics of the node that is asked.
async function size() {
  try { return (await metrics()).get("eldest_backup_bytes") ?? null; } catch { return null; }
}

function last({ every_ms, last_success_ago_ms: since }) {
  if (since === null) return h("span", { class: "warn" }, "none since its start");
  const when = ago(new Date(Date.now() - since).toISOString());
  return since > LATE * every_ms ? h("span", { class: "warn" }, when, ", late") : when;
}

const failures = (count) => count ? h("span", { class: "bad" }, `${count} since its start`) : "none";

function row([member, told], own, copied) {
  if (!told) return [member.name, h("span", { class: "faint" }, "no answer"), "–", "–", "–"];
  const kept = told.backup;
  if (!kept) return [member.name, "no schedule", "–", "–", "–"];
  return [member.name, `every ${span(kept.every_ms)}`, last(kept), member.id === own && copied ? bytes(copied) : "–", failures(kept.failures)];
}

function advice(told) {
  const answered = told.filter(([, one]) => one);
  const keep = answered.filter(([, one]) => one.backup).length;
  if (answered.length < told.length || keep >= Math.min(2, told.length)) return "";
  const setting = h("code", {}, "[backup]");
  return keep === 0
    ? h("p", { class: "warn" }, "No node keeps copies by schedule. The table ", setting, " in a node's configuration sets a folder and an interval.")
    : h("p", { class: "warn" }, "Only one node keeps copies. Configure ", setting, " on two nodes at least, on another disk than the data.");
}

// The last line of a whole backup has the number of its rows.
const isWhole = async (blob) => /\nend \d+ [0-9a-f]{8}\n$/.test(await blob.slice(-64).text());

async function download(say) {
  say("Reading the backup. Client writes go on.");
  let blob;
  try {
    blob = await (await send("GET", "/v1/backup", { signal: AbortSignal.timeout(DOWNLOAD_MOST) })).blob();
  } catch (error) {
    say("");
    throw error;
  }
  if (!await isWhole(blob)) {
    say("");
    throw new Error("The backup was cut short, so it is not saved. Try again.");
  }
  const name = `eldest-${cluster.status.cluster}-${new Date().toISOString().slice(0, 19).replaceAll(":", "")}Z.backup`;
  const url = URL.createObjectURL(blob);
  h("a", { href: url, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(url), FORGOTTEN_AFTER);
  say(`The backup is complete: ${name}, ${bytes(blob.size)}. It has all data, so keep it as safe as the nodes' disks.`);
}

function restoring() {
  const step = (text, command) => h("li", {}, text, h("pre", {}, command));
  return [
    h("ol", { class: "steps" },
      step("Check that the file is whole:", "eldest backup check FILE"),
      step("Restore it, through any node. The command finds the leader:", `eldest restore FILE --yes --url ${asked()}`)),
    h("p", {}, "A restore replaces all documents, users and elections at once. It leaves roles and processes alone, and fencing tokens never go back. \
A backup of another cluster needs ", h("code", {}, "--other-cluster"), " if this one has data."),
  ];
}

export function backups() {
  const said = outcome();
  const place = h("div", {}, h("p", { class: "faint" }, "Asking all nodes."));
  const now = h("div");
  const how = h("div");
  const take = button("Download a backup", async (event) => {
    const pressed = event.target;
    pressed.disabled = true;
    try { await download(said.say); } finally { pressed.disabled = false; }
  }, { class: "main" });
  return {
    element: h("div", {}, place, h("section", {}, h("h3", {}, "Take one now"), now, said.element), h("section", {}, h("h3", {}, "Restore one"), how)),
    every: EVERY,
    async load() {
      refresh(how, restoring());
      if (mayOrder()) {
        if (!take.isConnected) now.replaceChildren(h("p", {}, `The whole state as one text, as ${cluster.status?.node.name ?? "this node"} has it.`), take);
      } else {
        now.replaceChildren(lacking("take a backup", "order") || "");
      }
      if (!cluster.status) return;
      const [told, copied] = await Promise.all([askAll(), size()]);
      refresh(place, table("Copies that nodes keep by schedule", ["node", "schedule", "last success", "size", "failures"],
        told.map((one) => row(one, cluster.status.node.id, copied))), advice(told));
    },
  };
}
