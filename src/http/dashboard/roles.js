// Roles: who holds each, which callers wait for it, what became of it, and how an operator gives it to another holder.

import { encode, get } from "./api.js";
import { ago, button, clock, field, h, refresh, short, tried } from "./dom.js";
import { countdown, span } from "./leases.js";
import { listing } from "./lists.js";
import { carryOut, confirmed, lacking, outcome } from "./orders.js";
import { can, mayOrder } from "./rights.js";

const KINDS = ["role_acquired", "role_lost"];
const TTL_S = 30;

const lease = (role) => role.leader ? [countdown(role.expires_in_ms), h("span", { class: "faint" }, ` of ${span(role.ttl_ms)}`)] : "–";

const fact = (name, ...value) => h("div", {}, h("dt", {}, name), h("dd", {}, value));

const WAYS = {
  stream: (node) => `by an open stream at ${node.name}, which renews the lease until the stream ends`,
  tie: (node) => `by renewals; the lease ends with a connection to ${node.name}`,
  calls: () => "by renewals; if they stop, the role is free when the lease is over",
};

function facts(role, { holder, held_by: held }) {
  const { leader } = role;
  if (!leader) return h("p", {}, "Nobody holds this role now. The next caller that acquires it gets it.");
  return [
    h("dl", { class: "facts" },
      fact("Holder", h("strong", {}, leader.instance_id)),
      fact("Address", leader.address ?? "none stated"),
      fact("Fencing token", h("code", {}, String(role.token))),
      fact("Lease", lease(role)),
      fact("Held since", ago(role.acquired_at)),
      fact("How it is held", held && holder?.token === role.token ? WAYS[held.by](held.node) : "not known: not every node has said whether it serves a stream of the holder")),
    leader.metadata === null ? "" : [h("h4", {}, "Metadata"), h("pre", {}, JSON.stringify(leader.metadata, null, 2))],
    h("p", { class: "faint" }, "A resource that the role protects should refuse tokens below this one."),
  ];
}

function queue({ waiting, waiters }) {
  if (waiting == null) return h("p", { class: "faint" }, "Only the leader knows which callers wait.");
  if (!waiting) return h("p", {}, "No caller waits for this role.");
  if (!waiters) return h("p", {}, `${waiting} wait for this role.`);
  return [
    h("ol", {}, waiters.map((one) => h("li", {}, one.instance_id, one.priority ? h("span", { class: "faint" }, ` with priority ${one.priority}`) : ""))),
    waiting > waiters.length ? h("p", { class: "faint" }, `And ${waiting - waiters.length} more.`) : "",
  ];
}

function history(turns) {
  if (!turns.length) return h("p", {}, "No history is known.");
  return h("ol", { class: "steps" }, turns.toReversed().map((turn) =>
    h("li", {}, h("time", { datetime: turn.at, title: turn.at }, `${new Date(turn.at).toLocaleDateString()} ${clock(turn.at)}`), ` ${turn.says}`, h("span", { class: "faint" }, " (", ago(turn.at), ")"))));
}

// The consequence of an order for the present holder.
const loses = (role) => role.leader ? h("p", {}, h("strong", {}, role.leader.instance_id), ` loses the role at once and learns it when it next renews. \
Its token ${role.token} is no longer the newest, so resources that check tokens refuse it.`) : "";

function nameHolder(role, say) {
  const instance = h("input", { name: "instance_id", required: true, autocomplete: "off" });
  const address = h("input", { name: "address", autocomplete: "off", placeholder: "10.0.0.7:80" });
  const ttl = h("input", { name: "ttl", type: "number", min: 1, max: 3600, required: true, value: role.ttl_ms ? Math.round(role.ttl_ms / 1000) : TTL_S });
  return confirmed({
    title: `Name the holder of ${role.role}`,
    content: [loses(role), h("p", {}, "The new holder must renew the lease itself: otherwise the role is free again after the lease."),
      field("Instance id of the new holder", instance, true), field("Its address (optional)", address, true), field("Lease in seconds", ttl)],
    yes: "Name this holder", typed: role.leader ? role.role : undefined, say,
    work: () => carryOut("POST", `/v1/roles/${encode(role.role)}/elect`,
      { instance_id: instance.value.trim(), ttl_ms: Number(ttl.value) * 1000, ...(address.value.trim() ? { address: address.value.trim() } : {}) }),
    done: (said) => `${said.leader.instance_id} holds ${said.role} with token ${said.token}.`,
  });
}

const endLease = (role, say) => confirmed({
  title: `End the lease of ${role.role}?`,
  content: [loses(role), h("p", {}, role.waiting ? "The first caller that waits gets the role." : "The role is free until a caller acquires it, which may be the same holder."),
    h("p", { class: "faint" }, "If the holder protects its lease by a secret, the cluster refuses this. Name another holder instead.")],
  yes: "End the lease", typed: role.role, say,
  work: () => carryOut("POST", `/v1/roles/${encode(role.role)}/release`, { instance_id: role.leader.instance_id, token: role.token }),
  done: `The lease of ${role.leader.instance_id} has ended.`,
});

function actions(role, say) {
  const name = mayOrder() ? button(role.leader ? "Name another holder" : "Name a holder", () => nameHolder(role, say)) : null;
  const end = role.leader && can("write", "roles", role.role) ? button("End the lease", () => endLease(role, say), { class: "danger" }) : null;
  return [
    name || end ? h("div", { class: "row" }, name, end) : "",
    name ? "" : lacking("name the holder of a role", "order"),
    end || !role.leader ? "" : lacking("end this lease", `write roles/${role.role}`),
  ];
}

export function roles() {
  const said = outcome();
  const heading = h("h3", { class: "lead", tabindex: -1 });
  const body = h("div");
  const panel = h("section", { hidden: true }, button("All roles", () => close()), heading, body);
  let open = null;
  let from = null;
  const list = listing({
    caption: "Held roles", path: "/v1/roles", area: "roles", empty: "No role is held now. A client acquires one with: eldest role acquire NAME INSTANCE",
    heads: ["role", "holder", "address", "token", "lease", "held", "waiting", "more"],
    row: (role) => [role.role, role.leader?.instance_id, role.leader?.address ?? "–", h("code", {}, String(role.token)), lease(role), ago(role.acquired_at),
      String(role.waiting ?? "–"), button("Details", () => show(role.role), { "aria-label": `Details of ${short(role.role)}` })],
  });
  const wanted = h("input", { name: "role", required: true, autocomplete: "off" });
  const other = h("form", { onsubmit: tried((event) => { event.preventDefault(); return show(wanted.value); }) },
    field("Any role, also one that is free", wanted), h("button", { type: "submit" }, "Show this role"));
  const all = h("div", {}, list.element, other);

  async function loadOne() {
    const name = open;
    const [role, told] = await Promise.all([get(`/v1/roles/${encode(name)}`), get(`/v1/explain/roles/${encode(name)}`)]);
    if (open !== name) return;
    refresh(body, facts(role, told), actions(role, order), h("h4", {}, "Waiting, the next one first"), queue(told), h("h4", {}, "History, newest first"), history(told.turns));
  }
  const order = (text) => {
    said.say(text);
    if (text && open) loadOne();
  };
  async function show(name) {
    said.say("");
    from = document.activeElement;
    open = name;
    heading.textContent = name;
    refresh(body, h("p", { class: "faint" }, "Loading."));
    [panel.hidden, all.hidden] = [false, true];
    heading.focus();
    await loadOne();
  }
  async function close() {
    said.say("");
    open = null;
    [panel.hidden, all.hidden] = [true, false];
    await list.load();
    (from?.isConnected ? from : wanted).focus();
  }
  return { element: h("div", {}, said.element, all, panel), every: 2000, kinds: KINDS, load: () => open === null ? list.load() : loadOne() };
}
