// Processes that have registered, and their removal by an operator.

import { encode, get } from "./api.js";
import { ago, button, field, h, short, tried } from "./dom.js";
import { countdown } from "./leases.js";
import { listing } from "./lists.js";
import { carryOut, confirmed, lacking, outcome } from "./orders.js";
import { mayOrder } from "./rights.js";

const PAGE = 50;

// A process states its capabilities as it likes: as a list, as a text or as an object.
const abilities = (given) => Array.isArray(given) && given.every((one) => typeof one === "string") ? given.join(", ") : short(given ?? "–");

const remove = (one, say) => confirmed({
  title: `Remove ${one.id} from the registry?`,
  content: [h("p", {}, "The process itself is not stopped. Its next heartbeat is refused, and it may register again."),
    h("p", {}, "Documents that end with its registration are removed, too.")],
  yes: "Remove it", typed: one.id, say,
  work: () => carryOut("POST", `/v1/processes/${encode(one.id)}/remove`),
  done: `${one.id} is removed.`,
});

export function processes() {
  const said = outcome();
  const note = h("div");
  const wanted = Object.fromEntries(["role", "capability"].map((name) => [name, h("input", { type: "search", name, autocomplete: "off" })]));
  const chosen = () => Object.entries(wanted).map(([name, input]) => [name, input.value.trim()]).filter(([, value]) => value);
  const list = listing({
    caption: "Registered processes", path: "/v1/processes", prefix: false, kinds: ["process_registered", "process_changed", "process_removed"],
    empty: "No process matches. A process registers with: eldest proc register ID IDENTIFIER",
    heads: ["id", "identifier", "role", "capabilities", "metadata", "registered", "ends in", "registry"],
    read: (_, after) => get(`/v1/processes?${new URLSearchParams([["limit", PAGE], ...chosen(), ...(after === null ? [] : [["after", after]])])}`),
    row: (one, load) => [one.id, one.identifier, one.role ?? "–", abilities(one.capabilities), one.metadata === null ? "–" : short(one.metadata),
      ago(one.registered_at), countdown(one.expires_in_ms),
      mayOrder() ? button("Remove", async () => { if (await remove(one, said.say) !== undefined) await load(); }, { class: "danger", "aria-label": `Remove ${short(one.id)}` }) : "–"],
  });
  const filter = h("form", { role: "search", onsubmit: tried((event) => { event.preventDefault(); return list.show(""); }) },
    field("Role", wanted.role), field("Capability", wanted.capability), h("button", { type: "submit" }, "Show"));
  return {
    ...list, element: h("div", {}, said.element, filter, list.element, note),
    async load() {
      note.replaceChildren(mayOrder() ? "" : lacking("remove a process", "order"));
      await list.load();
    },
  };
}
