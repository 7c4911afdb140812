// Orders of operators: they are asked for first, carried out once, and shown only to those who may give them.

import { Refused, send } from "./api.js";
import { cluster } from "./cluster.js";
import { ask, h } from "./dom.js";

// A hand-over waits until the next leader has caught up. A node gives up a write after its `request_timeout_ms` and then says itself
// that the outcome is unknown, so the page waits longer than that.
const PATIENCE_MS = 30_000;
const LOOK_FIRST = "Look at the present state before you try again.";

// `advice` is what to do when no answer came.
export async function carryOut(method, path, body, { headers, advice = LOOK_FIRST } = {}) {
  try {
    const text = await (await send(method, path, { body, headers, patience: PATIENCE_MS })).text();
    return text ? JSON.parse(text) : null;
  } catch (error) {
    if (error instanceof Refused) throw error;
    throw new Error(`No answer came, so the outcome is unknown. ${advice}`);
  }
}

// A line above a view that says what an order has done.
export function outcome() {
  const element = h("p", { class: "outcome", role: "status" });
  return { element, say: (text) => { element.textContent = text; } };
}

// Asks for confirmation and carries the work out. `typed` is a word that the user must type, and `done` what is said afterwards.
export async function confirmed({ title, content, yes, typed, work, done, say }) {
  say("");
  const word = typed?.trim() || undefined;
  const result = await ask(title, content, yes, async (form) => ({ said: await work(form) }), { danger: typed !== undefined, typed: word });
  if (result) say(typeof done === "function" ? done(result.said) : done);
  return result?.said;
}

// Says which grant an action needs that is not shown.
export const lacking = (what, grant) => cluster.caller
  ? h("p", { class: "faint" }, `To ${what} you need the grant `, h("code", {}, grant), ". Sign in with a token that has it.") : "";
