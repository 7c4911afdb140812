// The cluster at a glance: who leads and why, who is next, what is wrong, how fast it is, and each node.

import { get } from "./api.js";
import { charts, leaderless, quantile, rate, sample } from "./charts.js";
import { cluster } from "./cluster.js";
import { ago, bytes, clock, h, refresh, seconds, table } from "./dom.js";
import { leading, sentence } from "./why.js";

const SAMPLE_EVERY = 1000;
const EXAMINE_EVERY = 10_000;
const EXAMINE_SOON = 2000;
// The node asks all others twice. With long timings it waits up to six seconds each time.
const PATIENCE = 14_000;
const OLD_EXAMINATION_MS = 20_000;
const SEVERITIES = { error: "bad", warning: "warn", note: "faint" };

// The last examination of all nodes by the node of this page, its time, and the reason if a later one failed.
let examined = null;
let examinedAt = 0;
let failed = null;
let begunAt = 0;
let begunFor = "";
let examining = false;

// An examination takes longer than the page may wait for its other figures. A new leader and a node that falls silent are a reason for another.
async function examine({ status, explained }) {
  const now = JSON.stringify([status.leader?.id, explained?.silent.map((one) => one.id), status.service_down]);
  if (examining || Date.now() - begunAt < (now === begunFor ? EXAMINE_EVERY : EXAMINE_SOON)) return;
  [examining, begunAt, begunFor] = [true, Date.now(), now];
  try {
    examined = await get("/v1/explain/health", { patience: PATIENCE });
    [examinedAt, failed] = [Date.now(), null];
  } catch (error) {
    failed = error.message;
  }
  examining = false;
}

const told = (id) => examined?.nodes.find((node) => node.id === id);

// The problems, the worst first: each is a class, a sentence, and what to type. The status and the journals are newer than the examination.
function findings({ status, explained }) {
  const name = (id) => told(id)?.name ?? `node ${id}`;
  const over = { no_leader: status.leader, service_down: !status.service_down };
  const known = (examined?.findings ?? []).filter((one) => !over[one.about]);
  const found = known.map(({ severity, nodes, text, next }) => [SEVERITIES[severity], `${nodes.length ? `${nodes.map(name).join(", ")}: ` : ""}${text}.`, next]);
  const has = (about) => known.some((one) => one.about === about);
  for (const one of explained?.silent ?? []) {
    if (told(one.id)?.answers !== false) found.unshift(["bad", `${one.name} does not answer: ${one.why}.`]);
  }
  if (!status.leader && !has("no_leader")) found.unshift(["bad", "There is no leader."]);
  if (status.service_down && !has("service_down")) found.push(["warn", "Client writes are stopped by an operator.", "eldest service up"]);
  if (status.remark && !isFresh()) found.push(["warn", `${status.node.name}: ${status.remark}.`]);
  for (const one of explained?.as_seen ?? []) {
    if (one.journal_lost) found.push(["warn", `${one.name} has lost its journal.`]);
  }
  return found;
}

const isFresh = () => examined && Date.now() - examinedAt < OLD_EXAMINATION_MS;

// Says whether the list of problems is new and complete.
function reliance(found) {
  if (failed) return h("p", { class: "warn" }, `${examined ? `As of ${clock(examinedAt)}: the` : "The"} node could not find out what is wrong: ${failed}`);
  if (!examined) return h("p", { class: "faint" }, "Asking all nodes what is wrong.");
  if (!isFresh()) return h("p", { class: "warn" }, `As of ${clock(examinedAt)}.`);
  return found.length ? "" : h("p", { class: "faint" }, "Nothing is wrong.");
}

// The number of nodes that may still fail, as a sentence.
function spare({ status, explained }) {
  if (!explained || status.mode !== "safe") return null;
  const voters = status.members.filter((member) => member.votes);
  const silent = new Set(explained.silent.map((one) => one.id));
  const up = voters.filter((member) => !silent.has(member.id)).length;
  const more = up - explained.needed;
  const nodes = voters.length === status.members.length ? "nodes" : "voting nodes";
  if (voters.length === 1 && up === 1) return ["good", "The only voting node answers. If it fails, the cluster stops."];
  const all = up === voters.length ? `All ${up} ${nodes} answer` : `${up} of ${voters.length} ${nodes} answer`;
  if (more < 0) return ["bad", `${all} ${status.node.name}: too few to form a majority.`];
  if (more === 0) return [up === voters.length ? "good" : "warn", `${all}. If one${up === voters.length ? "" : " more"} fails, the cluster stops.`];
  return [up === voters.length ? "good" : "warn", `${all}. The cluster goes on if ${more === 1 ? "any one of them fails" : `any ${more} of them fail`}.`];
}

function health(state) {
  const [kind, text] = spare(state) ?? (state.status.mode === "available" && state.explained ? ["good", "In available mode each side goes on by itself."] : ["faint", "…"]);
  const found = findings(state);
  return h("section", { class: "card", "aria-label": "Health" }, h("h3", {}, "Health"), h("p", { class: kind }, text),
    h("ul", {}, found.map(([kind, text, next]) => h("li", {}, h("span", { class: kind }, text), next ? h("p", { class: "faint" }, "Next: ", h("code", {}, next)) : ""))),
    reliance(found));
}

// The nodes are asked every three seconds.
const OLD_MS = 15_000;

function leadership({ explained, explainedAt }) {
  if (!explained) return h("section", { class: "card" }, h("h3", {}, "Leader"), h("p", { class: "faint" }, "Asking all nodes."));
  const [who, ...why] = leading(explained);
  const since = explained.leader && explained.changes[0]?.epoch === explained.leader.epoch ? explained.changes[0].at : null;
  return h("section", { class: "card", "aria-label": "Leader" }, h("h3", {}, "Leader"),
    h("p", { class: "lead" }, explained.leader ? "♛ " : "", who, " ", since ? h("span", { class: "faint" }, "(", ago(since), ")") : ""),
    why.map((text) => h("p", {}, text)),
    Date.now() - explainedAt > OLD_MS ? h("p", { class: "warn" }, `As of ${clock(explainedAt)}: the nodes have not answered since.`) : "",
    h("ul", {}, explained.next.map((step) => h("li", {}, sentence(step.says)))));
}

const ms = (value) => value === null ? "–" : `${value < 10 ? value.toFixed(1) : Math.round(value)} ms`;

function figures({ status }) {
  const one = (name, value, about) => h("div", {}, h("dt", { title: about }, name), h("dd", {}, value));
  return h("dl", { class: "figures" },
    one("writes", rate() === null ? "–" : `${Math.round(rate())}/s`, "records committed in the last second"),
    one("commit p50", ms(quantile(0.5)), "half of the last minute's commits were faster"),
    one("commit p99", ms(quantile(0.99)), "99 of 100 of the last minute's commits were faster"),
    one("leaderless", leaderless() === null ? "–" : leaderless() < 1 ? ms(leaderless() * 1000) : `${leaderless().toFixed(1)} s`, "how long the leader's process has known no leader since it started"),
    one("state", bytes(status.state_bytes), `of at most ${bytes(status.state_bytes_most)}`),
    one("index", status.commit_index, "the newest committed record"));
}

function role(status, member, seen) {
  const leads = status.leader?.id === member.id;
  if (leads) return h("strong", { "data-crown": member.name }, "♛ leader");
  if (!member.reachable) return h("span", { class: "bad" }, "unreachable");
  const name = member.role ?? (seen?.leader ? "follower" : "candidate");
  return member.votes === false ? `${name}, learns` : status.heir === member.id ? `${name}, next` : name;
}

function disk(said) {
  if (!said?.disk) return "–";
  if (said.disk.full) return h("span", { class: "bad" }, "full");
  if (said.disk.waits_ms >= 1000) return h("span", { class: "bad" }, `stalled for ${seconds(said.disk.waits_ms)}`);
  return h("span", { title: "the slowest sync of the last minute" }, `${said.disk.slowest_sync_ms} ms`);
}

function rows({ status, explained }) {
  const contenders = new Map((explained?.contenders ?? []).map((one) => [one.node, one]));
  return status.members.map((member) => {
    const seen = explained?.as_seen.find((one) => one.id === member.id);
    const fit = contenders.get(member.id);
    const lag = member.lag ?? fit?.lag ?? (fit?.fitness === "ready" ? 0 : null);
    const remark = member.trouble ?? (fit && fit.fitness !== "ready" ? fit.fitness.replace("_", " ") : "");
    const said = told(member.id);
    // Two followers need not hear from each other.
    const hears = [member.id, status.node.id].includes(status.leader?.id);
    return [member.name, role(status, member, seen), seen?.epoch ?? "–", lag ?? "–", hears ? seconds(member.last_heard_ms) : "–", disk(said), said?.version ?? "–",
      member.url, remark];
  });
}

function matrix({ status, explained }) {
  const cell = (from, to) => {
    if (from.id === to.id) return "·";
    const seen = explained.as_seen.find((one) => one.id === from.id);
    if (!seen) return h("span", { class: "faint" }, "no answer");
    return seen.reaches.includes(to.id) ? h("span", { class: "good" }, "yes") : h("span", { class: "bad" }, "no");
  };
  const members = status.members;
  const lines = members.map((from) => [from.name, ...members.map((to) => cell(from, to))]);
  return table("Reachability: each row is the report of one node", ["from", ...members.map((member) => member.name)], lines);
}

export function overview() {
  const place = h("div", {}, h("p", { class: "faint" }, "Asking this node."));
  const draw = () => {
    if (!cluster.status) return;
    refresh(place,
      h("div", { class: "cards" }, leadership(cluster), health(cluster)),
      figures(cluster),
      table("Nodes, as this one sees them", ["node", "role", "epoch", "lag", "last heard", "slowest sync", "version", "address", "remark"], rows(cluster)),
      charts(),
      cluster.explained ? matrix(cluster) : "");
  };
  let sampled = 0;
  return {
    element: place, every: 1000, watches: true,
    async load() {
      draw();
      if (!cluster.status || cluster.trouble) return;
      examine(cluster).then(draw);
      if (Date.now() - sampled < SAMPLE_EVERY) return;
      sampled = Date.now();
      // A value that cannot be measured is shown as unknown.
      await Promise.allSettled([sample()]);
      draw();
    },
  };
}
