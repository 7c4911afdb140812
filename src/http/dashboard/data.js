// Roles, processes, users and elections: lists, one page at a time.

import { encode, get } from "./api.js";
import { button, h, refresh, seconds, short, table, tried } from "./dom.js";

// A list with a filter by prefix and pages. `heads` are the column heads, `row` makes the cells of an item.
export function listing({ caption, path, heads, row, prefix = true, every = 2000 }) {
  let after = null;
  let next = null;
  const found = h("div");
  const wanted = h("input", { type: "search", name: "prefix", autocomplete: "off" });
  const more = button("Next page", () => { after = next; return load(); });
  const first = button("First page", () => { after = null; return load(); });
  async function load() {
    const query = new URLSearchParams({ limit: "50" });
    if (prefix && wanted.value) query.set("prefix", wanted.value);
    if (after !== null) query.set("after", after);
    const page = await get(`${path}?${query}`);
    next = page.next;
    more.disabled = next === null;
    first.disabled = after === null;
    refresh(found, table(caption, heads, page.items.map((item) => row(item, load))));
  }
  const filter = h("form", { role: "search", onsubmit: tried((event) => { event.preventDefault(); after = null; return load(); }) },
    h("label", {}, "Names that begin with", wanted), h("button", { type: "submit" }, "Show"));
  return {
    element: h("div", {}, prefix ? filter : null, found, h("div", { class: "row" }, first, more)),
    load, every,
  };
}

async function why(role, place) {
  const told = await get(`/v1/explain/roles/${encode(role)}`);
  const turns = told.turns.toReversed().map((turn) => h("li", {}, h("time", {}, turn.at), ` ${turn.says}`));
  place.replaceChildren(h("h3", {}, `History of ${role}`),
    turns.length ? h("ol", { class: "steps" }, turns) : h("p", {}, "No history is known."));
}

export function roles() {
  const told = h("section", { "aria-live": "polite" });
  const list = listing({
    caption: "Held roles", path: "/v1/roles",
    heads: ["role", "holder", "address", "token", "ends in", "waiting", "history"],
    row: (role) => [role.role, role.leader?.instance_id, role.leader?.address ?? "–", String(role.token), seconds(role.expires_in_ms),
      role.waiting ?? "–", button("Why", () => why(role.role, told), { "aria-label": `What became of ${role.role}` })],
  });
  list.element.append(told);
  return list;
}

export const processes = () => listing({
  caption: "Registered processes", path: "/v1/processes", prefix: false,
  heads: ["id", "identifier", "role", "capabilities", "ends in"],
  row: (one) => [one.id, one.identifier, one.role ?? "–", short(one.capabilities ?? "–"), seconds(one.expires_in_ms)],
});

export const users = () => listing({
  caption: "Users", path: "/v1/users", heads: ["name", "group", "more"],
  row: ({ name, group, ...more }) => [name, group ?? "–", Object.keys(more).length ? short(more) : "–"],
});

export const elections = () => listing({
  caption: "Elections and their tallies", path: "/v1/elections", heads: ["name", "tally", "votes", "for", "ends"],
  row: (one) => [one.name, Object.entries(one.tally ?? {}).map(([choice, count]) => `${choice}: ${count}`).join(", "), one.votes,
    one.groups ? one.groups.join(", ") : "everybody", one.end_date ?? "–"],
});
