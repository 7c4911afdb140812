// Documents: listed, created, edited against the version that was shown, and deleted.

import { Refused, encode, order, send } from "./api.js";
import { ask, button, field, h, short, tried } from "./dom.js";
import { listing } from "./lists.js";

const path = (key) => `/v1/docs/${encode(key)}`;

// The value is shown and sent as text: as numbers of JavaScript, its numbers would lose digits.
function editor(key, value, rev, saved) {
  const text = h("textarea", { name: "value", spellcheck: "false", required: true });
  text.value = value;
  const said = h("p", { role: "alert", class: "bad" });
  const now = h("div");
  let base = rev;
  async function save(event) {
    event.preventDefault();
    said.textContent = "";
    now.replaceChildren();
    try { JSON.parse(text.value); } catch (error) {
      said.textContent = `This is not valid JSON: ${error.message}. Write a string in quotation marks.`;
      return;
    }
    try {
      const put = await send("PUT", path(key), { body: text.value, headers: { "if-match": `"${base}"` } });
      base = (await put.json()).rev;
    } catch (error) {
      said.textContent = error.message;
      if (error instanceof Refused && error.status === 412) await conflict();
      return;
    }
    await saved(`Saved ${key}.`);
  }
  async function conflict() {
    const read = await send("GET", path(key));
    const present = await read.text();
    const revNow = read.headers.get("etag")?.replaceAll('"', "");
    said.textContent = "The document has changed since it was loaded. Nothing was written.";
    now.replaceChildren(h("h3", {}, "Current value"), h("pre", { "data-present": true }, present),
      button("Overwrite with my value", () => { base = revNow; now.replaceChildren(); said.textContent = "Save again to overwrite it."; }));
  }
  async function remove() {
    await ask(`Delete ${key}?`, h("p", {}, "Only the version shown here is deleted, not a newer one."), "Delete", async () => {
      await order("DELETE", path(key), undefined, { "if-match": `"${base}"` });
      await saved(`Deleted ${key}.`, true);
    }, { danger: true });
  }
  return h("form", { onsubmit: tried(save), "aria-label": `Edit ${key}`, "data-editor": key },
    h("h3", {}, key, " ", h("span", { class: "faint" }, `revision ${rev}`)),
    field("Value, as JSON", text, true), said, now,
    h("div", { class: "row" }, h("button", { type: "submit", class: "main" }, "Save"), button("Delete", remove, { class: "danger" })));
}

export function documents() {
  const place = h("section");
  const note = h("p", { role: "status" });
  let list;
  function saved(text, gone) {
    note.textContent = text;
    if (gone) place.replaceChildren();
    return list.load();
  }
  async function open(key) {
    note.textContent = "";
    const read = await send("GET", path(key));
    const rev = read.headers.get("etag").replaceAll('"', "");
    place.replaceChildren(editor(key, await read.text(), rev, saved));
    place.querySelector("textarea").focus();
  }
  async function make() {
    const key = h("input", { name: "key", required: true });
    const value = h("textarea", { name: "value", required: true });
    await ask("A new document", [field("Key", key, true), field("Value, as JSON", value, true)], "Create", async () => {
      try { JSON.parse(value.value); } catch (error) { throw new Error(`The value is not valid JSON: ${error.message}`); }
      await order("PUT", path(key.value), value.value, { "if-none-match": "*" });
      await saved(`Created ${key.value}.`);
    });
  }
  list = listing({
    caption: "Documents", path: "/v1/docs", area: "docs", kinds: ["change"], heads: ["key", "value", "revision", "edit"],
    row: (doc) => [doc.key, short(doc.value), doc.rev, button("Edit", () => open(doc.key), { "aria-label": `Edit ${doc.key}` })],
  });
  list.element.prepend(button("New document", make));
  list.element.append(note, place);
  return list;
}
