// The frame: views, signing in, and what is wrong.

import { asked, home, signIn, signOut, signedIn } from "./api.js";
import { backups } from "./backups.js";
import { begin, cluster, follow, forNewCaller } from "./cluster.js";
import { conflicts } from "./conflicts.js";
import { documents } from "./documents.js";
import { ask, button, clock, closeQuestion, field, h, questionClosed, refresh } from "./dom.js";
import { elections } from "./elections.js";
import { feed } from "./feed.js";
import { members } from "./members.js";
import { overview } from "./overview.js";
import { processes } from "./processes.js";
import { roles } from "./roles.js";
import { timeline } from "./timeline.js";

// A view has an element, and `load`, which is called every so many milliseconds, and soon after an event of its `kinds`. It may say that
// it has an `unsaved` text.
const VIEWS = {
  overview: ["Overview", overview],
  timeline: ["Timeline", timeline],
  roles: ["Roles", roles],
  processes: ["Processes", processes],
  documents: ["Documents", documents],
  elections: ["Elections", elections],
  conflicts: ["Conflicts", conflicts],
  feed: ["Feed", feed],
  members: ["Members", members],
  backups: ["Backups", backups],
};

// Events may come by the thousand: a view is loaded again this often at most.
const AT_MOST_EVERY = 500;

const byId = (id) => document.getElementById(id);
const say = (id, text) => { if (byId(id).textContent !== text) byId(id).textContent = text; };

let view = null;

function open() {
  // The link that skips to the content.
  if (view && location.hash === "#main") return;
  const name = Object.hasOwn(VIEWS, location.hash.slice(1)) ? location.hash.slice(1) : "overview";
  if (view?.name === name) return;
  if (view?.unsaved?.() && !confirm("Discard the text that is not saved?")) {
    history.replaceState(null, "", `#${view.name}`);
    return;
  }
  const moved = view !== null;
  view?.leave?.();
  clearTimeout(view?.timer);
  const [title, make] = VIEWS[name];
  view = { name, ...make() };
  for (const link of document.querySelectorAll("nav a")) {
    if (link.hash === `#${name}`) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  complain("action", "");
  closeQuestion();
  document.title = `${title} – Eldest`;
  const heading = h("h2", { tabindex: -1 }, title);
  byId("main").replaceChildren(heading, h("div", { id: "refused" }), view.element);
  if (moved) heading.focus();
  const shown = view;
  follow(view.kinds ?? [], () => soon(shown));
  load(view);
}

function next(shown, pause) {
  clearTimeout(shown.timer);
  shown.timer = setTimeout(() => load(shown), pause);
}

// Loads the view soon, or once more after the load that is under way.
function soon(shown) {
  if (shown.soon || shown.refused || shown !== view) return;
  shown.soon = true;
  if (!shown.loading) next(shown, Math.max(0, (shown.loaded ?? 0) + AT_MOST_EVERY - Date.now()));
}

async function load(shown) {
  if (shown !== view || shown.loading) return;
  shown.soon = false;
  shown.loading = true;
  shown.loaded = Date.now();
  if (!document.hidden && !cluster.lostSince) {
    try {
      await shown.load();
      shown.failures = 0;
      refused(shown, null);
      complain("view", "");
    } catch (error) {
      // The answer would be the same until the user signs in.
      shown.refused = error.status === 401 || error.status === 403;
      if (shown.refused) refused(shown, error);
      // A first call without an answer may be the end of the node: the watch of the cluster says that.
      shown.failures = (shown.failures ?? 0) + 1;
      if (!shown.refused && !cluster.lostSince && (error.status || shown.failures > 1)) complain("view", error.message);
    }
  }
  shown.loading = false;
  if (shown === view && !shown.refused) next(shown, shown.soon ? AT_MOST_EVERY : shown.every);
}

// A view that the caller may not see says what is missing.
function refused(shown, error) {
  if (shown !== view) return;
  shown.element.hidden = error !== null;
  refresh(byId("refused"), error ? h("div", { class: "card" },
    h("p", {}, `You may not see this: ${error.message}.`),
    button(signedIn() ? "Sign in with another token" : "Sign in", () => sign(""), { class: "main" })) : "");
}

const complaints = new Map();

function complain(about, text) {
  complaints.set(about, text);
  say("alert", [...new Set([...complaints.values()].filter(Boolean))].join(" "));
}

const leaderOf = (status) => status.members.find((member) => member.id === status.leader?.id);

function summary({ status }) {
  if (!status) return "Connecting to this node.";
  const leader = leaderOf(status);
  return `${leader ? `${leader.name} leads, in epoch ${status.epoch}.` : "There is no leader."} Shown by ${status.node.name}.`;
}

function connection() {
  if (cluster.lostSince) return `Disconnected since ${clock(cluster.lostSince)}`;
  if (cluster.refused) return cluster.refused.status === 401 ? "Not signed in" : "This token may not see the status";
  if (!cluster.status) return "Connecting";
  return cluster.live ? "Live" : "Asking every second";
}

function trouble() {
  if (cluster.lostSince && cluster.tried.length) {
    return `No node answers this browser since ${clock(cluster.lostSince)}. It has tried ${cluster.tried.join(", ")}. What is shown below is from before. \
If you can reach a node in another way, open its address.`;
  }
  if (cluster.trouble) return cluster.trouble;
  const { status, explained, explainedAt } = cluster;
  const first = status?.members.find((member) => member.url === home);
  const isBack = explainedAt > cluster.movedAt && explained.as_seen.some((one) => one.id === first?.id);
  if (!cluster.lostSince && asked() !== home && !isBack) {
    return `${home}, which served this page, did not answer at ${clock(cluster.movedAt)}. The page has gone on with ${asked()}.`;
  }
  const others = (status?.members ?? []).filter((member) => !cluster.known.includes(member.url));
  return others.length ? `Reload the page so that it can also call ${others.map((member) => member.name).join(", ")}.` : "";
}

let crowned;

function show() {
  if (cluster.status) say("cluster", cluster.status.cluster);
  say("summary", summary(cluster));
  say("connection", connection());
  byId("connection").dataset.state = cluster.lostSince ? "lost" : cluster.live ? "live" : "asking";
  document.body.classList.toggle("stale", cluster.lostSince !== null);
  complain("cluster", trouble());
  const caller = cluster.caller;
  say("caller", caller && (signedIn() || caller.name !== "anonymous") ? `Signed in as ${caller.name}.` : "");
  byId("sign").textContent = signedIn() ? "Sign out" : "Sign in";
  const leader = cluster.status?.leader?.id ?? null;
  if (crowned !== undefined && crowned !== leader) say("live", summary(cluster));
  if (cluster.status) crowned = leader;
  if (view?.watches && !view.refused && !view.loading && !cluster.lostSince) next(view, 0);
}

let signing = false;

async function sign(why) {
  if (signing) return;
  signing = true;
  await questionClosed();
  const token = h("input", { type: "password", name: "token", required: true, autocomplete: "off" });
  const keep = h("input", { type: "checkbox", name: "keep" });
  const text = why ? `The token is not accepted: ${why}.` : "Enter the admin token or your own token. The page forgets it when you reload it, unless you tick the box.";
  const went = await ask("Sign in", [h("p", {}, text), field("Token", token, true), h("label", { class: "check" }, keep, "Keep it until this tab is closed")],
    "Sign in", async () => {
      signIn(token.value.trim(), keep.checked);
      return true;
    });
  signing = false;
  if (!went) return;
  forNewCaller();
  if (!view) return;
  view.refused = false;
  next(view, 0);
}

byId("views").replaceChildren(...Object.entries(VIEWS).map(([name, [title]]) => h("li", {}, h("a", { href: `#${name}` }, title))));
byId("sign").addEventListener("click", () => {
  if (!signedIn()) return sign("");
  signOut();
  location.reload();
});
document.addEventListener("trouble", (event) => complain("action", event.detail));
document.addEventListener("unauthorized", (event) => sign(event.detail));
document.addEventListener("cluster", show);
addEventListener("hashchange", open);
open();
begin();
