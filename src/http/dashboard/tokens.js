// Tokens of clients: what each may do, and until when. The secret of a new one is shown once and kept nowhere.

import { encode, get } from "./api.js";
import { cluster } from "./cluster.js";
import { ago, button, field, h, refresh, table } from "./dom.js";
import { countdown } from "./leases.js";
import { carryOut, confirmed, outcome } from "./orders.js";

const PAGE = 20;
const GRANTS_MOST = 32;
const VERBS = ["read", "write", "watch"];
// These two have no names, so a grant for them has no prefix.
const WHOLE = ["status", "*"];
const AREAS = ["docs", "roles", "processes", "channels", "users", "elections", ...WHOLE];
const SPANS = [["days", 86_400_000], ["hours", 3_600_000]];

const selected = (options, chosen) => options.map(([text, value]) => h("option", { value, selected: value === chosen }, text));

// One grant to be chosen: verbs, an area, and the beginning of the names.
function grantRow(changed, number) {
  const verbs = VERBS.map((verb) => [verb, h("input", { type: "checkbox", name: verb, checked: verb === "read", onchange: changed })]);
  const prefix = h("input", { name: "prefix", autocomplete: "off", placeholder: "all names", oninput: changed });
  const area = h("select", { name: "area", onchange: () => {
    prefix.disabled = WHOLE.includes(area.value);
    changed();
  } }, selected(AREAS.map((name) => [name === "*" ? "all areas" : name, name]), "docs"));
  const row = {
    text() {
      const chosen = verbs.filter(([, box]) => box.checked).map(([verb]) => verb).join();
      const names = prefix.disabled || !prefix.value ? "" : `/${prefix.value}`;
      return chosen && `${chosen} ${area.value}${names}`;
    },
    // A prefix is a beginning of a name and no folder.
    isLoose: () => !prefix.disabled && prefix.value !== "" && !prefix.value.endsWith("/"),
  };
  row.element = h("fieldset", {}, h("legend", {}, `Grant ${number}`), verbs.map(([verb, box]) => h("label", { class: "check" }, box, verb)),
    field("Area", area), field("Names that begin with", prefix),
    button("Leave out", () => changed(row), { "aria-label": `Leave out grant ${number}` }));
  return row;
}

// The fields of a new token; `grants` returns what has been chosen.
function grantsForm() {
  let rows = [];
  let made = 0;
  const place = h("div");
  const shown = h("p", { class: "preview" });
  const orders = h("input", { type: "checkbox", name: "order", onchange: () => show() });
  const more = button("Another grant", () => add());
  const grants = () => [...new Set([...rows.map((row) => row.text()), orders.checked ? "order" : ""])].filter(Boolean);
  function show() {
    const texts = grants();
    refresh(shown, texts.length ? ["It may: ", texts.map((text, at) => [at ? ", " : "", h("code", {}, text)])] : "It may do nothing yet: choose a verb.",
      rows.some((row) => row.isLoose()) ? h("span", { class: "faint" }, " A prefix is a beginning: docs/app covers app/x, and also apple.") : "");
    more.disabled = rows.length >= GRANTS_MOST - 1;
  }
  function changed(gone) {
    if (rows.includes(gone)) {
      rows = rows.filter((row) => row !== gone);
      gone.element.remove();
      more.focus();
    }
    show();
  }
  function add() {
    made += 1;
    const row = grantRow(changed, made);
    rows.push(row);
    place.append(row.element);
    show();
  }
  add();
  return { grants, element: [place, h("div", { class: "row" }, more),
    h("label", { class: "check" }, orders, "It may give orders: everything that an operator may do, such as removing nodes and making tokens"), shown] };
}

async function copy(input) {
  try {
    await navigator.clipboard.writeText(input.value);
  } catch {
    // A page that was not loaded by HTTPS or from this machine has no clipboard.
    input.select();
    document.execCommand("copy");
  }
}

// The secret is in this dialog alone, and gone when it is closed. Escape does not close it.
function showSecret({ name, id, token, grants }) {
  const dialog = document.getElementById("dialog");
  const secret = h("input", { readonly: true, value: token, name: "secret", "aria-label": "The token", spellcheck: "false" });
  const copied = h("span", { role: "status" });
  const copyIt = button("Copy", async () => {
    await copy(secret);
    copied.textContent = "Copied.";
  }, { class: "main" });
  const stay = (event) => event.preventDefault();
  dialog.addEventListener("cancel", stay);
  dialog.addEventListener("close", () => {
    dialog.removeEventListener("cancel", stay);
    dialog.replaceChildren();
  }, { once: true });
  dialog.replaceChildren(h("h2", { id: "dialog-title" }, `The token ${name}`),
    h("p", { class: "warn" }, "Copy it now. It is shown this once: neither this page nor the cluster keeps it, and it cannot be shown again."),
    h("div", { class: "secret" }, secret, copyIt, copied),
    h("p", { class: "faint" }, "Its id is ", h("code", {}, id), ". It may: ", grants.map((grant, at) => [at ? ", " : "", h("code", {}, grant)]), "."),
    h("p", { class: "faint" }, "If you lose it, revoke it and make another one."),
    h("div", { class: "row" }, button("I have stored it", () => dialog.close())));
  if (!dialog.open) dialog.showModal();
  secret.select();
}

async function make(say) {
  const name = h("input", { name: "name", required: true, autocomplete: "off", placeholder: "web" });
  const form = grantsForm();
  const length = h("input", { name: "length", type: "number", min: 1, value: 30 });
  const unit = h("select", { name: "unit", onchange: () => { length.disabled = unit.value === ""; } }, selected([...SPANS, ["no end", ""]], SPANS[0][1]));
  const made = await confirmed({
    title: "Make a token", yes: "Make the token", say,
    content: [field("Name, for people", name, true), form.element, h("div", { class: "row" }, field("Valid for", length), field("Unit", unit))],
    work: () => {
      const grants = form.grants();
      if (!grants.length) throw new Error("Choose at least one verb of a grant.");
      const ttl = unit.value === "" ? {} : { ttl_ms: Number(length.value) * Number(unit.value) };
      return carryOut("POST", "/v1/tokens", { name: name.value, grants, ...ttl });
    },
    done: (token) => `The token ${token.name} is made.`,
  });
  if (made) showSecret(made);
}

const revoke = (token, say) => confirmed({
  title: `Revoke the token ${token.name}?`,
  content: [h("p", {}, "At once and for good, every node refuses it and ends the streams that were opened with it."),
    token.id === cluster.caller?.token_id ? h("p", { class: "warn" }, "You have signed in with this very token.") : ""],
  yes: "Revoke it", typed: token.name, say,
  work: () => carryOut("DELETE", `/v1/tokens/${encode(token.id)}`),
  done: `The token ${token.name} is revoked.`,
});

function ends(token) {
  if (!token.ends_at) return "never";
  const rest = new Date(token.ends_at) - Date.now();
  return h("span", { title: new Date(token.ends_at).toLocaleString() }, rest > 0 ? ["in ", countdown(rest)] : "has ended");
}

export function tokens() {
  let pages = [null];
  let next = null;
  const said = outcome();
  const place = h("div", {}, h("p", { class: "faint" }, "Loading."));
  const go = (to) => { pages = to; return load(); };
  const first = button("First page", () => go([null]));
  const more = button("Next page", () => go([...pages, next]));
  const steps = h("div", { class: "row", hidden: true }, first, more);
  const row = (token) => [token.name, h("code", {}, token.id), token.grants.map((grant) => h("code", { class: "grant" }, grant)), ago(token.made_at), ends(token),
    button("Revoke", async () => { if (await revoke(token, said.say) !== undefined) await load(); }, { class: "danger", "aria-label": `Revoke ${token.name}` })];
  async function load() {
    const after = pages.at(-1);
    const page = await get(`/v1/tokens?limit=${PAGE}${after === null ? "" : `&after=${after}`}`);
    next = page.next;
    [more.disabled, first.disabled, steps.hidden] = [next === null, pages.length === 1, next === null && pages.length === 1];
    refresh(place, table("Tokens of clients", ["name", "id", "grants", "made", "ends", "revoke"], page.items.map(row), "No token has been made."));
  }
  return {
    load,
    element: h("div", {}, said.element, place, steps, h("div", { class: "row" }, button("Make a token", async () => {
      await make(said.say);
      await load();
    }, { class: "main" }))),
  };
}
