// Builds the page: text is only ever set as text.

export function h(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value != null) element.setAttribute(name, value);
  }
  element.append(...children.flat().filter((child) => child != null).map((child) => child instanceof Node ? child : String(child)));
  return element;
}

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

const FOCUSABLE = "[tabindex], button, summary";

// Identifies the focused element by its tag, epoch and label; elements in which these are equal, by their order.
const sign = (one) => `${one.tagName} ${one.closest("[data-epoch]")?.dataset.epoch ?? ""} ${one.getAttribute("aria-label") ?? one.textContent}`;

// A button that is replaced while the pointer is down is never clicked.
let pressed = false;
for (const [event, is] of [["pointerdown", true], ["pointerup", false], ["pointercancel", false]]) {
  document.addEventListener(event, () => { pressed = is; }, true);
}

// Replaces the content, unless the user writes in it or presses a button in it. The focused element keeps the focus.
export function refresh(place, ...content) {
  const active = document.activeElement;
  const has = place.contains(active);
  if (has && (pressed || active.matches("input, select, textarea"))) return;
  const same = () => [...place.querySelectorAll(FOCUSABLE)].filter((one) => sign(one) === sign(active));
  const at = has ? same().indexOf(active) : -1;
  place.replaceChildren(...content);
  if (at >= 0) same()[at]?.focus({ preventScroll: true });
}

// Asks before an action. Resolves to the result of `work`, or to undefined.
export function ask(title, content, yes, work, danger = false) {
  const dialog = document.getElementById("dialog");
  return new Promise((done) => {
    let result;
    const said = h("p", { class: "bad", role: "alert" });
    const go = h("button", { type: "submit", class: danger ? "danger" : "main" }, yes);
    const form = h("form", { onsubmit: async (event) => {
      event.preventDefault();
      go.disabled = true;
      try {
        result = await work(new FormData(form));
        dialog.close();
      } catch (error) {
        said.textContent = error.message;
        go.disabled = false;
      }
    } }, ...[content].flat(), said, h("div", { class: "row" }, go, button("Cancel", () => dialog.close())));
    dialog.replaceChildren(h("h2", { id: "dialog-title" }, title), form);
    dialog.addEventListener("close", () => done(result), { once: true });
    if (!dialog.open) dialog.showModal();
  });
}
