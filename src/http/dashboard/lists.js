// Lists, one page at a time.

import { get } from "./api.js";
import { cluster, learnCaller } from "./cluster.js";
import { button, h, refresh, table, tried } from "./dom.js";
import { can, prefixes } from "./rights.js";

export const PAGE = 50;
// A filter is applied when the user has stopped typing for this long.
const TYPING = 300;

// Reads the page of an area whose names begin with the prefix and come after that name.
export function readPage(path, prefix, after) {
  const query = new URLSearchParams({ limit: PAGE });
  if (prefix) query.set("prefix", prefix);
  if (after !== null) query.set("after", after);
  return get(`${path}?${query}`);
}

// A list of an area, with a filter by prefix and pages. `heads` are the column heads, `row` makes the cells of an item, `empty` says why
// there may be none. `read` reads a page, and `above` makes what is shown above it. A caller that may read only parts of the area begins
// with the first one and is offered the others.
export function listing({ caption, path, area, heads, row, empty = "There are none.", prefix = true, every = 2000, kinds = [],
  read = (wanted, after) => readPage(path, wanted, after), above = () => "" }) {
  // The beginning of each page, up to the one that is shown.
  let pages = [null];
  let next = null;
  let touched = false;
  let typing = null;
  let asked = 0;
  let loaded = false;
  const found = h("div", { "data-list": area ?? true }, h("p", { class: "faint" }, "Loading."));
  const offered = h("div");
  const place = h("span", { class: "faint" });
  const wanted = h("input", { type: "search", name: "prefix", autocomplete: "off", spellcheck: "false", oninput: () => {
    touched = true;
    clearTimeout(typing);
    typing = setTimeout(tried(begin), TYPING);
  } });
  const go = (to) => { pages = to; return load(); };
  const first = button("First page", () => go([null]));
  const before = button("Previous page", () => go(pages.slice(0, -1)));
  const more = button("Next page", () => go([...pages, next]));
  const begin = () => go([null]);
  function show(prefix) {
    touched = true;
    wanted.value = prefix;
    return begin();
  }

  // Returns whether the caller may see what the filter asks for. The answer would be a refusal otherwise.
  function allowed() {
    const known = area && cluster.caller ? [...new Set(prefixes("read", area))] : [];
    if (!known.length || known.includes("")) {
      refresh(offered);
      return true;
    }
    if (!touched && !wanted.value) wanted.value = known[0];
    refresh(offered, h("div", { class: "row" }, h("span", {}, "You may read only the names that begin with"), known.map((one) => button(one, () => show(one)))));
    return can("read", area, wanted.value);
  }

  async function load() {
    if (area && !cluster.caller) await learnCaller();
    asked += 1;
    const number = asked;
    if (!allowed()) return refresh(found, h("p", {}, `You may not read the names that begin with "${wanted.value}".`));
    let page;
    try {
      page = await read(wanted.value, pages.at(-1));
    } catch (error) {
      if (!loaded) refresh(found, h("p", { class: "faint" }, `Nothing has been loaded yet: ${error.message}. Trying again.`));
      throw error;
    }
    // The answer to a later call is there already, or will be.
    if (number !== asked) return;
    loaded = true;
    next = page.next;
    more.disabled = next === null;
    before.disabled = first.disabled = pages.length === 1;
    const one = pages.length === 1 && next === null;
    place.textContent = one ? "" : `Page ${pages.length}`;
    steps.hidden = one;
    const none = wanted.value ? `No name begins with "${wanted.value}".` : pages.length > 1 ? "There is nothing more." : empty;
    refresh(found, above(wanted.value), table(caption, heads, page.items.map((item) => row(item, load)), none));
  }
  const filter = h("form", { role: "search", "aria-label": `Filter of: ${caption}`, onsubmit: tried((event) => { event.preventDefault(); touched = true; return begin(); }) },
    h("label", {}, "Names that begin with", wanted), h("button", { type: "submit" }, "Show"));
  const steps = h("div", { class: "row", hidden: true }, first, before, more, place);
  return { element: h("div", {}, prefix ? filter : null, offered, found, steps), filter, load, show, prefix: () => wanted.value, every, kinds };
}

// A list, and an item of it that is shown in its place.
export function opened(list) {
  const panel = h("section", { hidden: true });
  const note = h("p", { role: "status" });
  let from = null;
  return {
    element: h("div", {}, note, list.element, panel),
    note: (text) => { note.textContent = text; },
    show(...content) {
      if (panel.hidden) from = document.activeElement?.getAttribute("aria-label");
      note.textContent = "";
      list.element.hidden = true;
      panel.hidden = false;
      panel.replaceChildren(...content);
      panel.querySelector("h3")?.focus();
    },
    async close(text = "") {
      panel.hidden = true;
      panel.replaceChildren();
      list.element.hidden = false;
      note.textContent = text;
      await list.load();
      const again = [...list.element.querySelectorAll("button")].find((one) => from && one.getAttribute("aria-label") === from);
      (again ?? list.element.querySelector("input, button"))?.focus();
    },
  };
}
