// The settings that operators change: the members of the cluster, client writes, and tokens.

import { cluster } from "./cluster.js";
import { button, field, h, refresh, table } from "./dom.js";
import { carryOut, confirmed, lacking, outcome } from "./orders.js";
import { mayOrder } from "./rights.js";
import { tokens } from "./tokens.js";

const TOKENS_EVERY = 5000;
const DOWN_MINUTES = 5;

const handOver = (member, say) => confirmed({
  title: `Hand leadership to ${member.name}?`, say,
  content: h("p", {}, "Writes pause for some milliseconds. The cluster refuses this if the node is down or behind."),
  yes: "Hand over",
  work: () => carryOut("POST", "/elect", { node_idx: member.id }),
  done: `${member.name} leads.`,
});

const votersWithout = (member) => cluster.status.members.filter((one) => one.votes && one.id !== member.id);
const answers = (member) => member.reachable || member.id === cluster.status.leader?.id || member.id === cluster.status.node.id;

// The number of nodes that would be left to vote, and of those that may then fail. A node that is down counts as a voter.
function left(member) {
  const voters = votersWithout(member);
  const up = voters.filter(answers).length;
  const majority = Math.floor(voters.length / 2) + 1;
  const spare = up - majority;
  const all = `${voters.length} ${voters.length === 1 ? "node votes" : "nodes vote"} afterwards`;
  if (spare < 0) return `${all}. ${up === 1 ? "Only one of them answers" : `Only ${up} of them answer`}, and a majority is ${majority}: the cluster would stop.`;
  const may = spare === 0 ? "none" : spare === 1 ? "one" : String(spare);
  return up === voters.length ? `${all}, and ${may} of them may fail.`
    : `${all}. ${up} of them ${up === 1 ? "answers" : "answer"} now, and ${may} of those may fail.`;
}

const remove = (member, say) => confirmed({
  title: `Remove ${member.name} from the cluster?`, say, typed: member.name, yes: "Remove it",
  content: [h("p", {}, left(member)),
    h("p", {}, "The node stops by itself. It can come back only with an empty data directory."),
    member.id === cluster.status.leader?.id ? h("p", {}, "It leads now, so it hands over first.") : ""],
  work: () => carryOut("POST", "/v1/members", { remove: member.id }),
  done: `${member.name} is removed.`,
});

function move(member, say) {
  const address = h("input", { name: "address", required: true, autocomplete: "off", placeholder: "10.0.0.9:9000" });
  return confirmed({
    title: `Move ${member.name} to another address`, say, typed: member.name, yes: "Move it",
    content: [h("p", {}, `All nodes call it at ${member.url} now. If it does not answer at the new address, it counts as down.`), field("New address", address, true)],
    work: () => carryOut("POST", "/v1/members", { move: { id: member.id, address: address.value.trim() } }),
    done: `The nodes call ${member.name} at its new address.`,
  });
}

function add(say) {
  const free = Math.max(...cluster.status.members.map((member) => member.id)) + 1;
  const id = h("input", { name: "id", type: "number", min: 1, required: true, value: free });
  const address = h("input", { name: "address", required: true, autocomplete: "off", placeholder: "10.0.0.4:9000" });
  const name = h("input", { name: "name", autocomplete: "off", placeholder: `n${free}` });
  const force = h("input", { type: "checkbox", name: "force" });
  return confirmed({
    title: "Add a node", say, yes: "Add it",
    content: [h("p", {}, "Start the node first: the leader calls it, and refuses an address where it does not answer. It copies the state, and votes when it has caught up."),
      h("div", { class: "row" }, field("Its id", id), field("Its address", address), field("Name (optional)", name)),
      h("label", { class: "check" }, force, "Add it even if it does not answer. It counts as down until it does.")],
    work: () => carryOut("POST", "/v1/members", { add: { id: Number(id.value), address: address.value.trim(),
      ...(name.value.trim() ? { name: name.value.trim() } : {}), ...(force.checked ? { force: true } : {}) } }),
    done: `Node ${id.value} is added. It votes when it has caught up.`,
  });
}

function stopWrites(say) {
  const minutes = h("input", { name: "minutes", type: "number", min: 1, max: 60, required: true, value: DOWN_MINUTES });
  const reason = h("input", { name: "reason", autocomplete: "off", placeholder: "upgrade" });
  return confirmed({
    title: "Stop client writes?", say, typed: cluster.status.cluster, yes: "Stop client writes",
    content: [h("p", {}, "All nodes refuse writes of clients with 503. Holders may renew, but no role is granted, released or ended meanwhile. Reads go on."),
      h("div", { class: "row" }, field("For minutes, at most 60", minutes), field("Reason, shown to clients", reason))],
    work: () => carryOut("POST", "/service_down", { ttl_ms: Number(minutes.value) * 60_000, ...(reason.value.trim() ? { reason: reason.value.trim() } : {}) }),
    done: `Client writes are stopped for ${minutes.value} min.`,
  });
}

const resumeWrites = (say) => confirmed({
  title: "Let clients write again?", say, yes: "Resume client writes",
  content: h("p", {}, "All nodes take writes of clients again."),
  work: () => carryOut("POST", "/service_up"),
  done: "Clients may write again.",
});

function state(member) {
  if (member.id === cluster.status.leader?.id) return h("strong", { class: "whole" }, "leader");
  if (!member.reachable) return h("span", { class: "bad" }, member.trouble ?? "unreachable");
  return h("span", { class: "whole" }, member.votes ? "follower" : "copies the state");
}

function actions(member, isFixed, say) {
  return h("span", { class: "row" },
    button("Hand over", () => handOver(member, say), { disabled: member.id === cluster.status.leader?.id, "aria-label": `Hand over to ${member.name}` }),
    isFixed ? "" : button("Move", () => move(member, say), { "aria-label": `Move ${member.name}` }),
    isFixed || !votersWithout(member).length ? "" : button("Remove", () => remove(member, say), { class: "danger", "aria-label": `Remove ${member.name}` }));
}

function membership(say) {
  const { status } = cluster;
  // In available mode the topology files say who belongs to the cluster.
  const isFixed = status.mode === "available";
  const may = mayOrder();
  const heads = ["node", "id", "address", "votes", "state", ...may ? ["orders"] : []];
  const rows = status.members.map((member) => [member.name, String(member.id), member.url, member.votes ? "yes" : "not yet", state(member),
    ...may ? [actions(member, isFixed, say)] : []]);
  return [
    table("Members, as this node sees them", heads, rows),
    may && !isFixed ? h("div", { class: "row" }, button("Add a node", () => add(say))) : "",
    isFixed ? h("p", { class: "faint" }, "In available mode the topology files of the nodes say who belongs to the cluster.") : "",
    may ? "" : lacking("change the members", "order"),
  ];
}

function writes(say) {
  const down = cluster.status.service_down;
  return [
    h("p", { class: down ? "warn" : "" }, down ? "An operator has stopped them. They resume when the given time is over." : "All nodes take them."),
    !mayOrder() ? lacking("stop or resume client writes", "order") : h("div", { class: "row" },
      down ? button("Resume client writes", () => resumeWrites(say), { class: "main" }) : button("Stop client writes", () => stopWrites(say), { class: "danger" })),
  ];
}

export function members() {
  const said = outcome();
  const place = h("div", {}, h("p", { class: "faint" }, "Asking this node."));
  const service = h("div");
  const known = tokens();
  const refusal = h("div", {}, h("p", { class: "faint" }, "Loading."));
  let listed = 0;
  return {
    element: h("div", {}, said.element, place, h("section", {}, h("h3", {}, "Client writes"), service), h("section", {}, h("h3", {}, "Tokens"), refusal, known.element)),
    every: 1000, watches: true,
    async load() {
      if (!cluster.status) return;
      refresh(place, membership(said.say));
      refresh(service, writes(said.say));
      known.element.hidden = !mayOrder();
      refresh(refusal, mayOrder() ? "" : lacking("see, make or revoke tokens", "order"));
      if (!mayOrder() || Date.now() - listed < TOKENS_EVERY) return;
      listed = Date.now();
      await known.load();
    },
  };
}
