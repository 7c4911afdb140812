// Lists, one page at a time.

import { get } from "./api.js";
import { button, h, refresh, table, tried } from "./dom.js";
import { prefixes } from "./rights.js";

// A list of an area, with a filter by prefix and pages. `heads` are the column heads, `row` makes the cells of an item. A caller that may read
// only part of the area begins with its first prefix.
export function listing({ caption, path, area, heads, row, prefix = true, every = 2000, kinds = [] }) {
  let after = null;
  let next = null;
  let touched = false;
  const found = h("div", {}, h("p", { class: "faint" }, "Loading."));
  const wanted = h("input", { type: "search", name: "prefix", autocomplete: "off", oninput: () => { touched = true; } });
  const more = button("Next page", () => { after = next; return load(); });
  const first = button("First page", () => { after = null; return load(); });
  async function load() {
    const known = area && !touched ? prefixes("read", area) : [];
    if (known.length && !known.includes("") && !wanted.value) wanted.value = known[0];
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
    load, every, kinds,
  };
}
