// Builds the page: text is only ever set as text.

const SVG = "http://www.w3.org/2000/svg";
const HANDLERS = ["onclick", "onsubmit", "onwheel", "onkeydown", "oninput", "onchange"];

function filled(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (HANDLERS.includes(name)) element[name] = value;
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value != null) element.setAttribute(name, value);
  }
  element.append(...nodes(children));
  return element;
}

const nodes = (content) => content.flat(Infinity).filter((child) => child != null && child !== "")
  .map((child) => child instanceof Node ? child : document.createTextNode(child));

export const h = (tag, attributes = {}, ...children) => filled(document.createElement(tag), attributes, children);

export const svg = (tag, attributes = {}, ...children) => filled(document.createElementNS(SVG, tag), attributes, children);

// An error of `work` is shown above the view.
export const tried = (work) => async (event) => {
  try {
    await work(event);
    document.dispatchEvent(new CustomEvent("trouble", { detail: "" }));
  } catch (error) {
    document.dispatchEvent(new CustomEvent("trouble", { detail: error.message }));
  }
};

export const button = (text, work, attributes = {}) => h("button", { type: "button", onclick: tried(work), ...attributes }, text);

export const field = (text, control, wide) => h("label", { class: wide ? "wide" : null }, text, control);

// A table that scrolls by itself on a narrow screen. The first cell of a row names it.
export function table(caption, heads, rows, none = "nothing") {
  const cell = (content, place) => place === 0 ? h("th", { scope: "row" }, content)
    : h("td", { class: typeof content === "number" ? "number" : null }, content ?? "–");
  const body = rows.length ? rows.map((row) => h("tr", {}, row.map(cell))) : [h("tr", {}, h("td", { colspan: heads.length }, none))];
  return h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": caption },
    h("table", {}, h("caption", {}, caption), h("thead", {}, h("tr", {}, heads.map((head) => h("th", { scope: "col" }, head)))), h("tbody", {}, body)));
}

export const short = (value, most = 120) => {
  const text = typeof value === "string" ? value : JSON.stringify(value);
  return text === undefined ? "" : text.length > most ? `${text.slice(0, most)}…` : text;
};

export const seconds = (ms) => ms == null ? "–" : `${(ms / 1000).toFixed(1)} s`;

const UNITS = [["B", 1], ["KiB", 1 << 10], ["MiB", 1 << 20], ["GiB", 1 << 30]];
export function bytes(count) {
  const [unit, size] = UNITS.findLast(([, size]) => count >= size) ?? UNITS[0];
  return size === 1 ? `${count} ${unit}` : `${(count / size).toFixed(1)} ${unit}`;
}

export const clock = (at) => new Date(at).toLocaleTimeString();

function passed(ms) {
  const s = Math.round(ms / 1000);
  if (s < 1) return "now";
  if (s < 60) return `${s} s ago`;
  if (s < 3600) return `${Math.floor(s / 60)} min ago`;
  if (s < 86_400) return `${Math.floor(s / 3600)} h ago`;
  return `${Math.floor(s / 86_400)} days ago`;
}

// Shows how long ago it was. The exact time is shown under the pointer.
export function ago(at) {
  if (!at) return "–";
  return h("time", { datetime: at, title: new Date(at).toLocaleString(undefined, { dateStyle: "medium", timeStyle: "long" }) }, passed(Date.now() - new Date(at)));
}

const alike = (old, made) => old.nodeType === made.nodeType && old.nodeName === made.nodeName;
const keyOf = (node) => node.dataset?.key;

function patch(old, made) {
  if (old.nodeType === Node.TEXT_NODE) {
    if (old.data !== made.data) old.data = made.data;
    return;
  }
  // The user opens and closes details.
  for (const { name } of [...old.attributes]) if (!made.hasAttribute(name) && name !== "open") old.removeAttribute(name);
  for (const { name, value } of made.attributes) if (old.getAttribute(name) !== value) old.setAttribute(name, value);
  for (const handler of HANDLERS) old[handler] = made[handler];
  patchChildren(old, [...made.childNodes]);
}

// Elements stay where they are and only what differs is changed, so focus, selection and scroll positions are kept. An element with
// a data-key keeps its identity when it moves.
function patchChildren(place, made) {
  const keyed = new Map([...place.children].filter(keyOf).map((child) => [keyOf(child), child]));
  let at = place.firstChild;
  for (const child of made) {
    const key = keyOf(child);
    const old = key ? keyed.get(key) : at && !keyOf(at) && alike(at, child) ? at : undefined;
    if (!old) {
      place.insertBefore(child, at);
      continue;
    }
    if (old === at) at = at.nextSibling;
    else place.insertBefore(old, at);
    patch(old, child);
  }
  while (at) {
    const next = at.nextSibling;
    at.remove();
    at = next;
  }
}

// Makes this the content of the place.
export const refresh = (place, ...content) => patchChildren(place, nodes(content));

const dialog = document.getElementById("dialog");
// The answer to a call that is under way must reach the user who made it.
let isBusy = false;
dialog.addEventListener("cancel", (event) => { if (isBusy) event.preventDefault(); });

// Resolves when no question is open.
export const questionClosed = () => new Promise((done) => {
  if (dialog.open) dialog.addEventListener("close", done, { once: true });
  else done();
});

export function closeQuestion() {
  if (!isBusy) dialog.close();
}

// Asks before an action. Resolves to the result of `work`, or to undefined. With `typed` the user must type this word first.
export function ask(title, content, yes, work, { danger = false, typed } = {}) {
  return new Promise((done) => {
    let result;
    const said = h("p", { class: "bad", role: "alert" });
    const go = h("button", { type: "submit", class: danger ? "danger" : "main", disabled: typed !== undefined }, yes);
    const cancel = button("Cancel", () => dialog.close());
    const word = typed === undefined ? null
      : field(`Type ${typed} to confirm`, h("input", { name: "typed", autocomplete: "off", oninput: (event) => { go.disabled = event.target.value.trim() !== typed; } }), true);
    const form = h("form", { onsubmit: async (event) => {
      event.preventDefault();
      isBusy = go.disabled = cancel.disabled = true;
      try {
        result = await work(new FormData(form));
        if (form.isConnected) dialog.close();
      } catch (error) {
        said.textContent = error.message;
      }
      isBusy = go.disabled = cancel.disabled = false;
    } }, content, word, said, h("div", { class: "row" }, go, cancel));
    dialog.replaceChildren(h("h2", { id: "dialog-title" }, title), form);
    dialog.addEventListener("close", () => done(result), { once: true });
    if (!dialog.open) dialog.showModal();
  });
}
