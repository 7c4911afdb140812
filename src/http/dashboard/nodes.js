// The leader, the followers, which node reaches which, and how fast writes are.

import { h, refresh, seconds, table } from "./dom.js";

const SAMPLES = 60;
const writes = [];
const latencies = [];
let before = null;

// Called with each page of metrics.
export function sample(found) {
  const now = { at: performance.now(), index: found.get("eldest_commit_index") ?? 0 };
  now.sum = found.get("eldest_commit_duration_seconds_sum") ?? 0;
  now.count = found.get("eldest_commit_duration_seconds_count") ?? 0;
  if (before) {
    const passed = (now.at - before.at) / 1000;
    writes.push(Math.max(0, (now.index - before.index) / passed));
    const calls = now.count - before.count;
    latencies.push(calls > 0 ? ((now.sum - before.sum) / calls) * 1000 : null);
    while (writes.length > SAMPLES) writes.shift();
    while (latencies.length > SAMPLES) latencies.shift();
  }
  before = now;
}

function chart(title, values, unit) {
  const known = values.filter((value) => value !== null);
  const most = Math.max(...known, 1);
  const place = (value, number) => `${(number / (SAMPLES - 1)) * 100},${38 - (value / most) * 36}`;
  const points = values.map((value, number) => value === null ? null : place(value, number)).filter(Boolean).join(" ");
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  svg.setAttribute("viewBox", "0 0 100 40");
  svg.setAttribute("preserveAspectRatio", "none");
  svg.setAttribute("aria-hidden", "true");
  const line = document.createElementNS("http://www.w3.org/2000/svg", "polyline");
  line.setAttribute("points", points);
  svg.append(line);
  const last = known.length ? `${known.at(-1).toFixed(1)} ${unit}` : "no data yet";
  const top = known.length ? `, at most ${Math.max(...known).toFixed(1)}` : "";
  return h("figure", {}, svg, h("figcaption", {}, `${title}: `, h("b", {}, last), top));
}

function role(status, member, seen) {
  const leads = status.leader?.id === member.id;
  if (leads) return h("strong", { "data-crown": member.name }, "♛ leader");
  if (!member.reachable) return h("span", { class: "bad" }, "unreachable");
  const name = member.role ?? (seen?.leader ? "follower" : "candidate");
  return member.votes === false ? `${name}, learns` : name;
}

function rows(status, explained) {
  const contenders = new Map((explained?.contenders ?? []).map((one) => [one.node, one]));
  return status.members.map((member) => {
    const seen = explained?.as_seen.find((one) => one.id === member.id);
    const fit = contenders.get(member.id);
    const lag = member.lag ?? fit?.lag ?? (fit?.fitness === "ready" ? 0 : null);
    const state = member.trouble ?? (fit && fit.fitness !== "ready" ? fit.fitness.replace("_", " ") : "");
    return [member.name, role(status, member, seen), seen?.epoch ?? "–", lag ?? "–", seconds(member.last_heard_ms), member.url, state];
  });
}

function matrix(status, explained) {
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

export function show(place, { status, explained }) {
  if (!status) return;
  const next = (explained?.next ?? []).map((step) => h("li", {}, step.says));
  const missing = (explained?.nobody_leads_because ?? []).map((one) => h("p", { class: "bad" }, `${one.name}: ${one.says}`));
  refresh(place,
    table("Nodes, as this one sees them", ["node", "role", "epoch", "lag", "last heard", "address", "remark"], rows(status, explained)),
    ...missing,
    status.remark ? h("p", { class: "warn" }, status.remark) : "",
    h("div", { class: "charts" }, chart("Records committed per second", writes, ""), chart("Commit latency here", latencies, "ms")),
    explained ? matrix(status, explained) : "",
    next.length ? h("h3", {}, "Next leader") : "",
    next.length ? h("ul", {}, next) : "");
}
