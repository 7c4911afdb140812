// Documents: listed by prefix or as folders, created, edited against the version that was shown, and deleted.

import { Refused, encode, get, lines, send } from "./api.js";
import { cluster } from "./cluster.js";
import { ago, ask, button, bytes, field, h, refresh, seconds, short, table, tried } from "./dom.js";
import { compact, exact, pretty, sides } from "./diff.js";
import { PAGE, listing, opened, readPage } from "./lists.js";
import { carryOut } from "./orders.js";
import { can, prefixes } from "./rights.js";

const DOCS = "/v1/docs";
// Sorts behind all keys of a folder.
const LAST = "\u{10ffff}";
// One page of folders takes at most this many calls.
const CALLS_MOST = 8;
const HISTORY_MOST = 200;
const TTL_LEAST = 1000;
const TTL_MOST = 86_400_000;
// Each write has a condition, which the second of two equal attempts does not meet.
const AGAIN = "Try again to learn it: nothing is written twice.";
const EARLIER = "by an earlier attempt, or somebody else wrote the same";

const path = (key) => `${DOCS}/${encode(key)}`;
const write = (method, key, query, body, headers) => carryOut(method, path(key) + query, body, { headers, advice: AGAIN });
const tag = (answer) => answer.headers.get("etag")?.replaceAll('"', "");

// The head of a document, without its value, or null if there is none.
async function glance(key) {
  try { return await send("HEAD", path(key)); } catch (error) {
    if (error.status === 404) return null;
    throw error;
  }
}

// The entry of a document in the list, which says how it ends. A document sorts before all others that its key begins.
async function entry(key) {
  const { items: [found] } = await get(`${DOCS}?${new URLSearchParams({ limit: 1, prefix: key })}`);
  return found?.key === key ? found : {};
}

// Reads a page of the folders and documents that a prefix holds. The API lists keys alone: after the first key of a folder, the
// listing goes on behind the folder.
async function readFolders(prefix, after) {
  const items = [];
  let from = after;
  for (let calls = 0; calls < CALLS_MOST && items.length < PAGE; calls += 1) {
    const page = await readPage(DOCS, prefix, from);
    for (const doc of page.items) {
      const slash = doc.key.indexOf("/", prefix.length);
      const folder = slash < 0 ? null : doc.key.slice(0, slash + 1);
      if (!folder) items.push(doc);
      else if (items.at(-1)?.folder !== folder) items.push({ folder });
    }
    if (page.next === null) return { items, next: null };
    from = items.at(-1).folder ? items.at(-1).folder + LAST : page.next;
  }
  return { items, next: from };
}

// The prefixes of a key or prefix that end with a slash, as buttons.
function crumbs(name, go) {
  const ends = [...name.matchAll(/\//g)].map(({ index }) => index + 1);
  const parts = ends.map((end, at) => [name.slice(at ? ends[at - 1] : 0, end), name.slice(0, end)]);
  const crumb = ([text, prefix]) => button(text, () => go(prefix), { class: "link", "aria-label": `Open ${prefix || "all documents"}` });
  return h("nav", { class: "crumbs", "aria-label": "Folder" }, crumb(["All documents", ""]), parts.map(crumb), h("span", {}, name.slice(ends.at(-1) ?? 0)));
}

const lease = (doc) => doc.with ? `with ${doc.with}` : "";
const left = (doc) => [doc.ttl_ms == null ? "" : doc.expires_in_ms == null ? `ttl ${seconds(doc.ttl_ms)}` : `in ${seconds(doc.expires_in_ms)}`, lease(doc)].filter(Boolean).join(" or ");

function parsed(text) {
  try { return JSON.parse(text); } catch (error) { throw new Error(`This is not valid JSON: ${error.message}. Write a string in quotation marks.`); }
}

// The parameters that let a document end as it would have ended before.
function ending(doc) {
  const query = new URLSearchParams();
  if (doc.ttl_ms != null) query.set("ttl_ms", doc.ttl_ms);
  if (doc.with) query.set("with", doc.with);
  if (doc.with && doc.token != null) query.set("token", doc.token);
  return query.size ? `?${query}` : "";
}

// Calls `tell` with each earlier value of a document that the feed has, until the present revision. Returns how far back that is.
async function readHistory(key, rev, signal, tell) {
  const query = new URLSearchParams({ format: "ndjson", kinds: "change", prefix: key, since: cluster.status?.mode === "available" ? "1.1@1" : "1" });
  const read = async () => {
    for await (const line of lines(`/v1/feed?${query}`, signal)) {
      const event = exact(line);
      if (event.kind === "bookmark" || event.kind === "error") return;
      if (event.table !== "doc" || event.key !== key) continue;
      tell(event);
      if (event.rev === rev) return;
    }
  };
  try {
    await read();
    return "This is all since the log began.";
  } catch (error) {
    if (error.status !== 410 || !error.problem.oldest) throw error;
    query.set("since", error.problem.oldest);
    await read();
    return `The feed does not go further back than event ${error.problem.oldest}.`;
  }
}

function history(key, version) {
  const place = h("div");
  let end = null;
  async function read() {
    stop();
    const mine = new AbortController();
    end = mine;
    const found = [];
    const { rev, text } = version();
    const compareWith = h("div");
    const state = h("p", { role: "status" }, "Reading the feed.");
    const rows = h("div");
    const op = (event) => event.op === "put" ? "put" : event.reason ? `deleted: ${event.reason.replace("_", " ")}` : "deleted";
    const value = (event) => event.op !== "put" ? "–" : event.value === undefined ? h("span", { class: "faint" }, "too large for the feed") : short(event.value);
    const compare = (event) => event.value === undefined || event.rev === rev ? "–" : button("Compare", () => {
      const about = `revision ${event.rev}, ${new Date(event.at).toLocaleString()}`;
      compareWith.replaceChildren(sides(["Earlier", about, JSON.stringify(event.value)], ["Now", `revision ${rev}`, text]));
    }, { "aria-label": `Compare revision ${event.rev} with the present one` });
    place.replaceChildren(state, rows, compareWith);
    let due = null;
    const draw = () => {
      due = null;
      refresh(rows, table(`History of ${key}, the newest first`, ["revision", "when", "change", "value", "compare"],
        found.toReversed().map((event) => [event.rev, ago(event.at), op(event), value(event), compare(event)])));
    };
    try {
      const reach = await readHistory(key, rev, mine.signal, (event) => {
        found.push(event);
        if (found.length > HISTORY_MOST) found.shift();
        due ??= setTimeout(draw, 100);
      });
      state.textContent = found.length ? `${reach}${found.length === HISTORY_MOST ? ` The newest ${HISTORY_MOST} changes are shown.` : ""}` : `The feed has no change of it. ${reach}`;
    } catch (error) {
      if (!mine.signal.aborted) state.textContent = `The history could not be read: ${error.message}.`;
    }
    mine.abort();
    clearTimeout(due);
    draw();
  }
  const stop = () => end?.abort();
  const shown = can("watch", "docs", key)
    ? [h("div", { class: "row" }, button("Show the history", tried(read), { "data-history": true })), place]
    : h("p", { class: "faint" }, `The history of this document needs the grant "watch docs/${key}".`);
  return { element: h("section", { "aria-label": "History" }, h("h4", {}, "History"), shown), stop };
}

// One document. `view` closes it, and `go` opens a prefix.
function editor(key, text, rev, doc, view, go) {
  const writes = can("write", "docs", key);
  let base = rev;
  let present = doc;
  const keeps = h("input", { type: "checkbox", name: "keeps", checked: true });
  const how = h("span");
  const keep = h("label", { class: "check" }, keeps, how);
  const value = writes ? h("textarea", { name: "value", spellcheck: "false", required: true }) : h("pre", { tabindex: 0, "aria-label": "Value" });
  const said = h("p", { role: "alert", class: "bad across" });
  const now = h("div", { class: "across" });
  const about = h("p", { class: "faint", "data-about": true });
  const news = h("p", { role: "status", class: "warn" });
  const past = history(key, () => ({ rev: base, text }));
  let saving = false;

  const shown = () => writes ? value.value : value.textContent;
  const set = (to) => { if (writes) value.value = to; else value.textContent = to; };
  const layouts = [["Pretty", pretty], ["Raw", compact]].map(([name, lay]) => button(name, () => {
    parsed(shown());
    set(lay(shown()));
    mark(name);
  }, { "data-layout": name }));
  const mark = (name) => { for (const one of layouts) one.setAttribute("aria-pressed", String(one.dataset.layout === name)); };
  set(pretty(text));
  mark("Pretty");

  function describe() {
    const end = left(present);
    about.textContent = [`Revision ${base}`, bytes(new TextEncoder().encode(text).length), end ? `ends ${end}` : "stays until it is deleted"].join(", ") + ".";
    keep.hidden = !ending(present);
    how.textContent = `Let it end as before (${[present.ttl_ms == null ? "" : `ttl ${seconds(present.ttl_ms)}`, lease(present)].filter(Boolean).join(", ")})`;
  }
  describe();

  // `ends` is the entry of the version that is replaced: the new one ends like it.
  async function save(condition, ends = present) {
    if (saving) return;
    saving = true;
    said.textContent = "";
    now.replaceChildren();
    try {
      await put(value.value, condition, ends);
    } finally {
      saving = false;
    }
  }
  const over = (rev, ends) => save({ "if-match": `"${rev}"` }, ends);

  async function put(mine, condition, ends) {
    let written;
    try {
      parsed(mine);
      written = await write("PUT", key, keeps.checked ? ending(ends) : "", mine, condition);
    } catch (error) {
      said.textContent = error.message;
      if (error instanceof Refused && error.status === 412) await conflict(compact(mine));
      return;
    }
    await saved(compact(mine), written.rev, `Saved ${key}.`);
  }

  async function saved(mine, rev, done) {
    [text, base] = [mine, rev];
    said.textContent = news.textContent = "";
    view.note(done);
    // The document is looked at every few seconds anyway, so a look that fails now is not reported as if the write had failed.
    await look().catch(() => {});
  }

  async function conflict(mine) {
    let read;
    try { read = await send("GET", path(key)); } catch (error) {
      if (error.status !== 404) throw error;
      said.textContent = "The document has been deleted since it was loaded. Nothing was written.";
      now.replaceChildren(h("div", { class: "row" }, button("Create it again with my value", () => save({ "if-none-match": "*" }))));
      return;
    }
    const [theirs, revNow, newest] = [await read.text(), tag(read), await entry(key)];
    if (compact(theirs) === mine) return saved(mine, revNow, `Your value is there: it was saved ${EARLIER}.`);
    const take = () => {
      [text, base, present] = [theirs, revNow, newest];
      value.value = pretty(theirs);
      mark("Pretty");
      said.textContent = news.textContent = "";
      now.replaceChildren();
      describe();
    };
    said.textContent = "The document has changed since it was loaded. Nothing was written.";
    now.replaceChildren(
      sides(["Your value", `based on revision ${base}`, mine], ["Current value", `revision ${revNow}`, theirs]),
      h("details", {}, h("summary", {}, "The current value as the node sent it"), h("pre", { "data-present": true }, theirs)),
      h("div", { class: "row" }, button("Overwrite with my value", () => over(revNow, newest), { class: "danger", "data-overwrite": true }),
        button("Take the current value", take, { "data-take": true })));
  }

  async function remove() {
    const done = await ask(`Delete ${key}?`, h("p", {}, `Only revision ${base}, which is shown here, is deleted, not a newer one.`), "Delete", async () => {
      try {
        await write("DELETE", key, "", undefined, { "if-match": `"${base}"` });
        return `Deleted ${key}.`;
      } catch (error) {
        if (!(error instanceof Refused) || ![404, 412].includes(error.status) || await glance(key) !== null) throw error;
        return `${key} is gone: an earlier attempt deleted it, or somebody else did.`;
      }
    }, { danger: true });
    if (!done) return;
    past.stop();
    await view.close(done);
  }

  // Whether it is still the version that is shown, and how long it has left. The value itself is not read again.
  async function look() {
    const before = base;
    const head = await glance(key);
    const rev = head && tag(head);
    // A write has changed it since: the answer is about the revision before.
    if (base !== before) return;
    news.textContent = !head ? "This document has been deleted meanwhile."
      : rev === base ? "" : `This document has changed meanwhile: it has revision ${rev} now.`;
    if (head && rev === base) {
      if (present.rev !== base) present = await entry(key);
      const rest = head.headers.get("eldest-expires-in-ms");
      if (rest !== null) present = { ...present, expires_in_ms: Number(rest) };
    }
    describe();
  }

  const isUnsaved = () => writes && compact(value.value) !== compact(text);
  async function leaving(go) {
    if (isUnsaved() && !await ask("Discard your text?", h("p", {}, `What you have written for ${key} is not saved.`), "Discard", async () => true, { danger: true })) return;
    past.stop();
    await go();
  }
  const content = [crumbs(key, (prefix) => leaving(() => go(prefix))), h("h3", { tabindex: -1 }, key), about, news,
    h("div", { class: "row", role: "group", "aria-label": "Layout" }, layouts)];
  const back = button("Back to the list", () => leaving(() => view.close()));
  const form = writes
    ? h("form", { onsubmit: tried((event) => { event.preventDefault(); return over(base); }), "aria-label": `Edit ${key}`, "data-editor": key },
      field("Value, as JSON", value, true), keep, said, now,
      h("div", { class: "row" }, h("button", { type: "submit", class: "main" }, "Save"), button("Delete", remove, { class: "danger" }), back))
    : h("div", { "data-viewer": key }, value,
      h("p", {}, `You may read this document, but not change it: that needs the grant "write docs/${key}".`), h("div", { class: "row" }, back));
  return { content: [...content, form, past.element], look, isUnsaved, stop: past.stop };
}

async function create(prefix, view, list) {
  const key = h("input", { name: "key", required: true, autocomplete: "off", spellcheck: "false" });
  const value = h("textarea", { name: "value", required: true, spellcheck: "false" });
  const ttl = h("input", { type: "number", name: "ttl_ms", min: TTL_LEAST, max: TTL_MOST, step: 1 });
  key.value = prefix;
  const done = await ask("A new document", [field("Key", key, true), field("Value, as JSON", value, true),
    field("Ends if it is not written or renewed for so many ms (may be empty)", ttl, true)], "Create", async () => {
    parsed(value.value);
    const query = ttl.value ? `?ttl_ms=${encode(ttl.value)}` : "";
    try {
      await write("PUT", key.value, query, value.value, { "if-none-match": "*" });
      return `Created ${key.value}.`;
    } catch (error) {
      const isThere = error instanceof Refused && error.status === 412 && can("read", "docs", key.value);
      if (!isThere || compact(await (await send("GET", path(key.value))).text()) !== compact(value.value)) throw error;
      return `${key.value} is there with your value: it was created ${EARLIER}.`;
    }
  });
  if (!done) return;
  view.note(done);
  await list.load();
}

export function documents() {
  let current = null;
  // As long as the user has not chosen, folders are shown if there is more than one page.
  let chosen = false;
  const folders = h("input", { type: "checkbox", name: "folders", onchange: tried(() => { chosen = true; return list.show(list.prefix()); }) });
  const go = (prefix) => {
    current = null;
    return view.close().then(() => list.show(prefix));
  };
  async function open(key) {
    const [read, doc] = await Promise.all([send("GET", path(key)), entry(key)]);
    current = editor(key, await read.text(), tag(read), doc, closing, go);
    view.show(...current.content);
  }
  async function read(prefix, after) {
    if (folders.checked) return readFolders(prefix, after);
    const page = await readPage(DOCS, prefix, after);
    if (chosen || after !== null || page.next === null) return page;
    chosen = folders.checked = true;
    return readFolders(prefix, after);
  }
  const name = (doc) => button(doc.key, () => open(doc.key), { class: "link", "aria-label": `${can("write", "docs", doc.key) ? "Edit" : "View"} ${doc.key}` });
  const row = (item) => item.folder
    ? [button(item.folder, () => list.show(item.folder), { class: "link", "aria-label": `Open ${item.folder}` }), h("span", { class: "faint" }, "folder"), "", ""]
    : [name(item), short(item.value), item.rev, left(item) || "–"];
  const list = listing({
    caption: "Documents", path: DOCS, area: "docs", kinds: ["change", "new_state"], heads: ["key", "value", "revision", "ends"], row, read,
    empty: "There are no documents.", above: (prefix) => crumbs(prefix, list.show),
  });
  const rights = h("div", { class: "row" });
  list.element.prepend(rights);
  list.filter.append(h("label", { class: "check" }, folders, "Folders"));
  const view = opened(list);
  // The browser asks before it leaves the page.
  const unload = (event) => { if (current?.isUnsaved()) event.preventDefault(); };
  addEventListener("beforeunload", unload);
  const closing = { ...view, close: (text) => { current = null; return view.close(text); } };
  return {
    ...list, element: view.element,
    async load() {
      if (current) return current.look();
      const written = prefixes("write", "docs");
      refresh(rights, written.length
        ? button("New document", () => create(list.prefix() || (written.includes("") ? "" : written[0]), view, list), { "data-new": true })
        : h("p", { class: "faint" }, "You may read documents here, but not write any."));
      return list.load();
    },
    unsaved: () => current?.isUnsaved() ?? false,
    leave() {
      removeEventListener("beforeunload", unload);
      current?.stop();
    },
  };
}
