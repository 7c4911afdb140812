// Roles: who holds each, how many wait, and what became of them.

import { encode, get } from "./api.js";
import { button, h, seconds } from "./dom.js";
import { listing } from "./lists.js";

async function why(role, place) {
  const told = await get(`/v1/explain/roles/${encode(role)}`);
  const turns = told.turns.toReversed().map((turn) => h("li", {}, h("time", {}, turn.at), ` ${turn.says}`));
  place.replaceChildren(h("h3", {}, `History of ${role}`),
    turns.length ? h("ol", { class: "steps" }, turns) : h("p", {}, "No history is known."));
}

export function roles() {
  const told = h("section", { "aria-live": "polite" });
  const list = listing({
    caption: "Held roles", path: "/v1/roles", area: "roles", kinds: ["role_acquired", "role_lost"],
    heads: ["role", "holder", "address", "token", "ends in", "waiting", "history"],
    row: (role) => [role.role, role.leader?.instance_id, role.leader?.address ?? "–", String(role.token), seconds(role.expires_in_ms),
      role.waiting ?? "–", button("Why", () => why(role.role, told), { "aria-label": `What became of ${role.role}` })],
  });
  list.element.append(told);
  return list;
}
