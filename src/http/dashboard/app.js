// The frame: views, signing in, and one question of each kind at a time.

import { get, metrics, signIn, signOut, signedIn } from "./api.js";
import { conflicts } from "./conflicts.js";
import { elections, processes, roles, users } from "./data.js";
import { documents } from "./documents.js";
import { ask, field, h } from "./dom.js";
import { feed } from "./feed.js";
import * as nodes from "./nodes.js";
import { backups, orders } from "./orders.js";
import * as timeline from "./timeline.js";

const STATUS_EVERY = 500;
const LOST_EVERY_MOST = 8000;

const state = { status: null, explained: null };
const byId = (id) => document.getElementById(id);

function watched(show) {
  const element = h("div");
  return { element, every: 500, load: async () => show(element, state) };
}

const VIEWS = {
  nodes: ["Nodes", () => watched(nodes.show)],
  timeline: ["Timeline", () => watched(timeline.show)],
  roles: ["Roles", roles],
  processes: ["Processes", processes],
  documents: ["Documents", documents],
  users: ["Users", users],
  elections: ["Elections", elections],
  conflicts: ["Conflicts", conflicts],
  feed: ["Feed", feed],
  backups: ["Backups", backups],
  orders: ["Orders", () => orders(state)],
};

let view = null;

function open() {
  const name = Object.hasOwn(VIEWS, location.hash.slice(1)) ? location.hash.slice(1) : "nodes";
  if (view?.name === name) return;
  const moved = view !== null;
  view?.leave?.();
  const [title, make] = VIEWS[name];
  view = { name, ...make() };
  for (const link of document.querySelectorAll("nav a")) {
    if (link.hash === `#${name}`) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  complain("action", "");
  document.title = `${title} – Eldest`;
  const heading = h("h2", { tabindex: -1 }, title);
  byId("main").replaceChildren(heading, view.element);
  if (moved) heading.focus();
  load(view);
}

async function load(shown) {
  if (shown !== view) return;
  if (!document.hidden) {
    try {
      await shown.load();
      complain("view", "");
    } catch (error) {
      complain("view", error.message);
    }
  }
  if (shown === view) setTimeout(() => load(shown), shown.every);
}

const complaints = new Map();

function complain(about, text) {
  complaints.set(about, text);
  const all = [...new Set([...complaints.values()].filter(Boolean))].join(" ");
  if (byId("alert").textContent !== all) byId("alert").textContent = all;
}

function summary(status) {
  const leader = status.members.find((member) => member.id === status.leader?.id);
  return leader ? `${leader.name} leads, in epoch ${status.epoch}. Shown by ${status.node.name}.` : `No leader. Shown by ${status.node.name}.`;
}

function took(status) {
  const before = state.status;
  state.status = status;
  byId("cluster").textContent = status.cluster;
  const text = summary(status);
  if (byId("summary").textContent !== text) byId("summary").textContent = text;
  if (before && before.leader?.id !== status.leader?.id) {
    byId("live").textContent = text;
    explain();
  }
}

let pause = STATUS_EVERY;

async function watch() {
  if (!document.hidden) {
    try {
      took(await get("/v1/status"));
      pause = STATUS_EVERY;
      complain("node", "");
    } catch (error) {
      pause = Math.min(pause * 2, LOST_EVERY_MOST);
      const others = (state.status?.members ?? []).filter((one) => one.id !== state.status.node.id).map((one) => one.url);
      const lost = error.status ? error.message : `This node does not answer. ${others.length ? `Other nodes: ${others.join(", ")}.` : ""}`;
      complain("node", lost);
    }
  }
  setTimeout(watch, pause);
}

let asking = false;

async function explain() {
  if (asking || document.hidden) return;
  asking = true;
  try { state.explained = await get("/v1/explain/leader?limit=20"); } catch { /* the status says what is wrong */ }
  asking = false;
}

async function measure() {
  if (!document.hidden) {
    try { nodes.sample(await metrics()); } catch { /* the status says what is wrong */ }
  }
  setTimeout(measure, 1000);
}

let signing = false;

async function sign(why) {
  if (signing) return;
  signing = true;
  const token = h("input", { type: "password", name: "token", required: true, autocomplete: "off" });
  const text = signedIn() ? `The token is not accepted${why ? `: ${why}` : ""}.` : "This cluster requires a token. It is kept only in this tab.";
  await ask("Sign in", [h("p", {}, text), field("Token", token, true)], "Sign in", async () => signIn(token.value.trim()));
  signing = false;
  byId("sign").hidden = !signedIn();
  byId("sign").textContent = "Sign out";
  pause = STATUS_EVERY;
  if (!signedIn()) return;
  try {
    took(await get("/v1/status"));
    explain();
  } catch { /* the watch says what is wrong */ }
}

function begin() {
  byId("views").replaceChildren(...Object.entries(VIEWS).map(([name, [title]]) => h("li", {}, h("a", { href: `#${name}` }, title))));
  byId("sign").hidden = !signedIn();
  byId("sign").addEventListener("click", () => { signOut(); location.reload(); });
  document.addEventListener("trouble", (event) => complain("action", event.detail));
  document.addEventListener("unauthorized", (event) => sign(event.detail));
  addEventListener("hashchange", open);
  document.addEventListener("visibilitychange", () => { if (!document.hidden) explain(); });
  open();
  watch();
  measure();
  explain();
  setInterval(explain, 3000);
}

begin();
