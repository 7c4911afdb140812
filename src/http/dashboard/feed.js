// Live events. The feed begins when the view is opened, and ends when it is left or the tab is hidden.

import { lines } from "./api.js";
import { button, clock, field, h, short } from "./dom.js";

const SHOWN = 200;
// However many events come, the list changes this often at most.
const DRAW_EVERY = 250;
const TYPING = 300;
// A feed without news sends a bookmark every 5 seconds.
const SILENCE = 12_000;
const AGAIN = 1000;

const GROUPS = {
  "Data": ["change"],
  "Roles": ["role_acquired", "role_lost"],
  "Processes": ["process_registered", "process_changed", "process_removed"],
  "Leadership": ["new_leader", "election_started", "election_completed"],
  "Merges": ["conflict", "merge_called_off", "new_state"],
  "Administration": ["members_changed", "token_created", "token_revoked", "service_down", "service_up"],
};

// The subject of an event, and its other members.
function parts({ id, kind, at, table, key, voter, role, process, conflict, name, node, ...rest }) {
  const about = [table, key ?? role ?? process ?? conflict ?? name ?? (node === undefined ? null : `node ${node}`), voter].filter((part) => part != null);
  return [about.join(" "), Object.entries(rest).map(([member, value]) => `${member} ${short(value, 200)}`).join(", ")];
}

function row({ event, came, missed }) {
  if (missed) return h("li", { class: "warn", "data-event": "missed" }, missed);
  const [about, rest] = parts(event);
  const at = event.at ?? came;
  return h("li", { "data-event": event.kind }, h("time", { datetime: new Date(at).toISOString() }, clock(at)), " ", h("strong", {}, event.kind.replaceAll("_", " ")),
    ` ${about} `, h("span", { class: "faint" }, short(rest, 300)), event.id ? h("small", { class: "faint" }, ` #${event.id}`) : "");
}

export function feed() {
  const list = h("ol", { class: "events", "aria-label": "Events, the newest first" });
  const state = h("p", { role: "status" }, "Beginning to read.");
  const count = h("p", { class: "faint" }, "No event yet.");
  const pause = button("Pause", () => { paused ? resume() : hold(); }, { "data-pause": true });
  const boxes = Object.entries(GROUPS).map(([name, kinds]) => {
    const box = h("input", { type: "checkbox", name: "kinds", value: kinds.join(), checked: true, onchange: () => again() });
    return h("label", { class: "check" }, box, name);
  });
  const chosen = () => boxes.map((label) => label.firstChild).filter((box) => box.checked);
  let typing = null;
  const prefix = h("input", { type: "search", name: "prefix", autocomplete: "off", spellcheck: "false", oninput: () => {
    clearTimeout(typing);
    typing = setTimeout(again, TYPING);
  } });

  let end = null;
  let since = null;
  let left = false;
  let last = 0;
  let broken = null;
  let paused = false;
  let refused = false;
  // Events that have come and are not shown yet. Only the newest of them will be.
  let waiting = [];
  let unseen = 0;
  let total = 0;
  let retry = null;

  const say = (text) => { if (state.textContent !== text) state.textContent = text; };
  const told = (number) => `${number.toLocaleString()} ${number === 1 ? "event" : "events"}`;

  function draw() {
    if (paused) {
      pause.textContent = unseen ? `Resume (${unseen.toLocaleString()} new ${unseen === 1 ? "event" : "events"})` : "Resume";
      return;
    }
    if (!waiting.length) return;
    const rows = waiting.splice(0).toReversed().map(row);
    for (let over = list.children.length + rows.length - SHOWN; over > 0; over -= 1) list.lastElementChild?.remove();
    list.prepend(...rows);
    unseen = 0;
    count.textContent = `${told(total)} since this view was opened${total > SHOWN ? `; the newest ${SHOWN} are shown` : ""}.`;
  }
  const drawing = setInterval(draw, DRAW_EVERY);

  function hold() {
    draw();
    paused = true;
    draw();
  }
  function resume() {
    paused = false;
    pause.textContent = "Pause";
    draw();
  }

  function add(entry) {
    waiting.push(entry);
    if (waiting.length > SHOWN) waiting.shift();
    unseen += 1;
  }

  function hear(event, began) {
    last = Date.now();
    broken = null;
    say(`Reading since ${clock(began)}.`);
    since = event.id ?? since;
    if (event.kind === "bookmark") return;
    if (event.kind === "error") throw new Error(event.detail);
    total += 1;
    add({ event, came: last });
  }

  function query() {
    const asked = new URLSearchParams({ format: "ndjson" });
    const boxesChosen = chosen();
    if (boxesChosen.length < boxes.length) asked.set("kinds", boxesChosen.map((box) => box.value).join());
    if (prefix.value) asked.set("prefix", prefix.value);
    if (since) asked.set("since", since);
    return asked;
  }

  async function follow() {
    if (left || end || document.hidden) return;
    if (!chosen().length) return say("No kind of event is chosen.");
    const mine = new AbortController();
    end = mine;
    const began = Date.now();
    last = began;
    let why = "it ended";
    try {
      for await (const line of lines(`/v1/feed?${query()}`, mine.signal)) {
        if (mine.signal.aborted && mine.signal.reason !== "silent") return;
        hear(JSON.parse(line), began);
      }
    } catch (error) {
      if (mine.signal.aborted && mine.signal.reason !== "silent") return;
      why = mine.signal.aborted ? "nothing has come" : error.message;
      refused = error.status === 401 || error.status === 403;
      if (error.status === 410) {
        since = null;
        add({ missed: "Events were missed here: the node no longer keeps what came after the last event below, or it belongs to another history." });
      }
    } finally {
      if (end === mine) end = null;
    }
    if (left || end) return;
    if (refused) return say(`You may not see events: ${why}.`);
    broken ??= new Date();
    say(`Broken off since ${clock(broken)}, trying again: ${why}.`);
    clearTimeout(retry);
    retry = setTimeout(follow, AGAIN);
  }

  function stop(reason = "left") {
    clearTimeout(retry);
    end?.abort(reason);
    if (reason !== "silent") end = null;
  }
  // Another filter: what is shown was asked for before.
  function again() {
    stop();
    since = null;
    refused = false;
    waiting = [];
    unseen = 0;
    list.replaceChildren();
    say("Beginning to read.");
    follow();
  }
  const seen = () => document.hidden ? stop() : follow();
  document.addEventListener("visibilitychange", seen);

  return {
    element: h("div", {},
      h("form", { role: "search", "aria-label": "Which events", onsubmit: (event) => { event.preventDefault(); again(); } },
        field("Names that begin with", prefix),
        h("fieldset", { class: "row" }, h("legend", {}, "Kinds of events"), boxes)),
      h("div", { class: "row" }, pause, button("Clear", () => { waiting = []; unseen = 0; list.replaceChildren(); }), state), count,
      h("div", { class: "card" }, list)),
    every: 2000,
    async load() {
      if (end && Date.now() - last > SILENCE) stop("silent");
      else if (!end && !refused && !broken) follow();
    },
    leave() {
      left = true;
      stop();
      clearInterval(drawing);
      clearTimeout(typing);
      document.removeEventListener("visibilitychange", seen);
    },
  };
}
