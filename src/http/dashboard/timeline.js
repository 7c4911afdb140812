// The changes of leader: who led when, as bars, and each change with its cause and steps.

import { cluster } from "./cluster.js";
import { ago, button, clock, h, refresh, svg } from "./dom.js";
import { because, leading } from "./why.js";

const LANE = 30;
const AXIS = 24;
const LEFT = 90;
const WIDTH_LEAST = 280;
const TICK_WIDTH = 110;
const TICKS = [1, 2, 5, 10, 30, 60, 120, 300, 900, 1800, 3600, 7200, 21_600, 43_200, 86_400, 604_800, 2_592_000].map((s) => s * 1000);
const SPAN_LEAST = 1000;
const STEP = 0.25;

const time = (at) => new Date(at).getTime();

// The steps by which a node leads no longer.
const ENDS = ["stepped_down", "following", "overridden", "started"];

// When each leader led, oldest first. That has ended when a change names it as the leader before, when it was elected again, or when
// it noted such a step: in available mode a change on the other side names another leader.
function reigns({ changes, since, leader }) {
  const ordered = [...changes].reverse();
  const noted = [...ordered.flatMap((change) => change.steps), ...(since ?? [])].filter((step) => ENDS.includes(step.event));
  return ordered.map((change, number) => {
    const { id, name } = change.leader ?? { name: "?" };
    const from = time(change.at);
    const changed = ordered.slice(number + 1).filter((later) => later.previous_leader?.id === id || later.leader?.id === id);
    // The clocks of nodes differ: a later change ends it at any rate.
    const ends = [...changed.map((one) => Math.max(from, time(one.at))),
      ...noted.filter((step) => step.by === id).map((step) => time(step.at)).filter((at) => at > from)];
    const to = ends.length ? Math.min(...ends) : null;
    return { change, name, from, to, leads: to === null && id === leader?.id };
  });
}

function axis([from, to], x, width, height) {
  const most = Math.max(1, Math.floor((width - LEFT) / TICK_WIDTH));
  const step = TICKS.find((one) => (to - from) / one <= most) ?? TICKS.at(-1);
  const first = Math.ceil(from / step) * step;
  const count = Math.min(most + 1, Math.floor((to - first) / step) + 1);
  const label = (at) => step >= 86_400_000 ? new Date(at).toLocaleDateString() : clock(at);
  return Array.from({ length: Math.max(0, count) }, (_, number) => first + number * step).map((at) => [
    svg("line", { class: "tick", x1: x(at), x2: x(at), y1: 0, y2: height - AXIS }),
    svg("text", { class: "axis", x: x(at), y: height - 6, "text-anchor": "middle" }, label(at)),
  ]);
}

function bars(explained, names, [from, to], width, choose) {
  const height = names.length * LANE + AXIS;
  const x = (at) => LEFT + (at - from) / (to - from) * (width - LEFT);
  const shown = reigns(explained).filter((one) => (one.to ?? to) >= from && one.from <= to);
  return svg("svg", { class: "reigns", viewBox: `0 0 ${width} ${height}`, role: "img", "data-from": from, "data-to": to,
    "aria-label": `Who led from ${clock(from)} to ${clock(to)}: ${shown.length} changes of leader, which the list below has in words` },
    axis([from, to], x, width, height),
    names.map((name, lane) => svg("text", { class: "lane", x: 0, y: lane * LANE + 20 }, name)),
    shown.map((one) => {
      const [start, end] = [Math.max(x(one.from), LEFT), Math.min(x(one.to ?? to), width)];
      return svg("rect", { class: one.leads ? "reign now" : "reign", x: start, y: names.indexOf(one.name) * LANE + 5, width: Math.max(2, end - start), height: LANE - 10,
        onclick: () => choose(one.change.epoch) },
        svg("title", {}, `${one.name} led from ${clock(one.from)}${one.to ? ` to ${clock(one.to)}` : ""}, in epoch ${one.change.epoch}`));
    }));
}

const after = (us) => us == null ? null : `+${(us / 1000).toFixed(1)} ms`;

function steps(title, all) {
  return h("details", {}, h("summary", {}, title), h("ol", { class: "steps" }, all.map((step) => h("li", {},
    h("time", { datetime: step.at, title: step.at }, after(step.after_us) ?? clock(step.at)), ` ${step.says}`))));
}

function change(one, number, leader) {
  const leads = number === 0 && one.epoch === leader?.epoch;
  const order = one.ordered_by ? h("p", { class: "faint" }, `Ordered by ${one.ordered_by}.`) : "";
  return h("li", { "data-key": one.epoch, "data-epoch": one.epoch },
    h("p", {}, h("strong", {}, `${one.leader?.name ?? "?"} ${leads ? "leads" : "led"}, in epoch ${one.epoch}`), `, from ${clock(one.at)} on `,
      h("span", { class: "faint" }, "(", ago(one.at), ")")),
    because(one).map((text) => h("p", {}, text)), order, steps(`${one.steps.length} steps`, one.steps));
}

export function timeline() {
  // The part that is shown, from one time to another. Null shows all.
  let shown = null;
  const picture = h("div", { class: "card", tabindex: 0, role: "group", "aria-label": "Who led when. Keys: plus and minus zoom, left and right move, 0 shows all" });
  const place = h("div", {}, h("p", { class: "faint" }, "Asking all nodes."));
  const whole = () => {
    const times = (cluster.explained?.changes ?? []).map((one) => time(one.at));
    const now = Math.max(Date.now(), ...times);
    const first = Math.min(now, ...times);
    return [first - Math.max(SPAN_LEAST, (now - first) * 0.02), now];
  };
  const range = () => shown ?? whole();
  function zoom(factor, at = 0.5) {
    const [from, to] = range();
    const [least, most] = whole();
    const span = Math.min(Math.max((to - from) * factor, SPAN_LEAST), most - least);
    const start = Math.min(Math.max(from + (to - from - span) * at, least), most - span);
    shown = span >= (most - least) * 0.999 ? null : [start, start + span];
    draw();
  }
  function move(share) {
    const [from, to] = range();
    const [least, most] = whole();
    const by = Math.min(Math.max((to - from) * share, least - from), most - to);
    if (shown) shown = [from + by, to + by];
    draw();
  }
  function reset() {
    shown = null;
    draw();
  }
  const keys = { "+": () => zoom(0.5), "=": () => zoom(0.5), "-": () => zoom(2), ArrowLeft: () => move(-STEP), ArrowRight: () => move(STEP), 0: reset };
  picture.onkeydown = (event) => {
    if (!keys[event.key] || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    keys[event.key]();
  };
  picture.addEventListener("wheel", (event) => {
    if (!event.ctrlKey && !event.shiftKey) return;
    event.preventDefault();
    const box = picture.getBoundingClientRect();
    zoom(event.deltaY > 0 ? 1.25 : 0.8, (event.clientX - box.left) / box.width);
  }, { passive: false });
  function choose(epoch) {
    const item = [...place.querySelectorAll("[data-epoch]")].find((one) => one.dataset.epoch === epoch);
    item?.querySelector("details")?.setAttribute("open", "");
    item?.scrollIntoView({ block: "center" });
    item?.querySelector("summary")?.focus();
  }
  function draw() {
    const { explained, status } = cluster;
    if (!explained || !status) return;
    const gone = explained.changes.map((one) => one.leader?.name ?? "?");
    const names = [...new Set([...status.members.map((member) => member.name), ...gone])];
    refresh(picture, explained.changes.length ? bars(explained, names, range(), Math.max(picture.clientWidth - 26, WIDTH_LEAST), choose) : h("p", {}, "The nodes that answered remember no change of leader."));
    refresh(place,
      explained.silent.map((one) => h("p", { class: "warn" }, `${one.name} did not answer: ${one.why}.`)),
      explained.as_seen.filter((one) => one.journal_lost).map((one) =>
        h("p", { class: "warn" }, `${one.name} has lost its journal: it knows nothing from before ${new Date(one.knows_since).toLocaleString()}.`)),
      explained.leader ? "" : leading(explained).map((text) => h("p", { class: "bad" }, text)),
      explained.since?.length ? steps(`${explained.since.length} steps since the last change`, explained.since) : "",
      h("ol", { class: "changes" }, explained.changes.map((one, number) => change(one, number, explained.leader))));
  }
  const zoomed = h("div", { class: "row" }, button("Zoom in", () => zoom(0.5)), button("Zoom out", () => zoom(2)),
    button("Earlier", () => move(-STEP)), button("Later", () => move(STEP)), button("All", reset));
  return { element: h("div", {}, picture, zoomed, place), every: 1000, watches: true, async load() { draw(); } };
}
