// Hand-over, changes of members and backups: an operator's orders, each with a question first.

import { Refused, metrics, order, send } from "./api.js";
import { ask, button, field, h, refresh, table } from "./dom.js";

// A refusal explains what is missing better than a hidden button.
async function tried(said, work) {
  said.textContent = "";
  try { await work(); } catch (error) {
    const needs = error instanceof Refused && (error.status === 401 || error.status === 403);
    said.textContent = needs ? `${error.message}. Sign in with a token that has the grant "order".` : error.message;
  }
}

export function orders(state) {
  const place = h("div");
  const said = h("p", { role: "alert" });
  const confirmed = (title, text, yes, work) => ask(title, h("p", {}, text), yes, () => tried(said, work), true);
  const lead = (member) => confirmed(`Hand leadership to ${member.name}?`, "Writes pause for some milliseconds.", "Hand over",
    () => order("POST", "/elect", { node_idx: member.id }));
  const remove = (member) => confirmed(`Remove ${member.name} from the cluster?`,
    "The node stops by itself, and its data directory becomes useless. From then on the cluster tolerates fewer failures.", "Remove",
    () => order("POST", "/v1/members", { remove: member.id }));
  const id = h("input", { name: "id", type: "number", min: 1, required: true });
  const address = h("input", { name: "address", required: true, placeholder: "10.0.0.4:9000" });
  const add = h("form", { onsubmit: (event) => {
    event.preventDefault();
    confirmed(`Add node ${id.value}?`, "It copies the state, and votes when it has caught up.", "Add",
      () => order("POST", "/v1/members", { add: { id: Number(id.value), address: address.value } }));
  } }, field("Id of the new node", id), field("Its address", address), h("button", { type: "submit" }, "Add the node"));
  return {
    element: h("div", {}, said, place, h("h3", {}, "Add a node"), add),
    every: 1000,
    async load() {
      const { status } = state;
      if (!status) return;
      const leader = status.leader?.id;
      refresh(place, table("Members", ["node", "address", "votes", "leadership", "membership"], status.members.map((member) => [
        member.name, member.url, member.votes ? "yes" : "learns",
        button("Hand over", () => lead(member), { disabled: member.id === leader, "aria-label": `Hand over to ${member.name}` }),
        button("Remove", () => remove(member), { class: "danger", "aria-label": `Remove ${member.name}` }),
      ])));
    },
  };
}

export function backups() {
  const place = h("div");
  const said = h("p", { role: "alert" });
  const download = () => tried(said, async () => {
    const response = await send("GET", "/v1/backup", { signal: AbortSignal.timeout(600_000) });
    const url = URL.createObjectURL(await response.blob());
    const link = h("a", { href: url, download: `eldest-${new Date().toISOString().replaceAll(":", "")}.backup` });
    link.click();
    setTimeout(() => URL.revokeObjectURL(url), 60_000);
  });
  return {
    element: h("div", {}, place, h("h3", {}, "Backup now"), h("p", {}, "The whole state, as text. To restore it: eldest restore FILE --yes."),
      button("Download a backup", download), said),
    every: 5000,
    async load() {
      const found = await metrics();
      const every = found.get("eldest_backup_every_seconds") ?? 0;
      const last = found.get("eldest_backup_last_success_timestamp_seconds") ?? 0;
      const rows = every === 0 ? [["schedule", "none: [backup] in the configuration keeps copies"]] : [
        ["a copy every", `${every} s`],
        ["last success", last ? new Date(last * 1000).toISOString() : "not since the start"],
        ["size of the last copy", `${found.get("eldest_backup_bytes") ?? 0} bytes`],
        ["failures since the start", `${found.get("eldest_backup_failures_total") ?? 0}`],
      ];
      refresh(place, table("Copies that this node keeps automatically", ["what", "how"], rows));
    },
  };
}
