// Values that merges overrode: both values side by side, to restore or to drop.

import { encode, send } from "./api.js";
import { ago, ask, button, h, short } from "./dom.js";
import { exact, sides } from "./diff.js";
import { listing, opened } from "./lists.js";
import { carryOut } from "./orders.js";
import { can } from "./rights.js";

const EMPTY = "There are no conflicts. They arise only in available mode, when two sides of a split that changed the same thing merge.";
const AGAIN = "Try again to learn it: a conflict is settled only once.";
const KINDS = { doc: "document", user: "user", election: "election", vote: "vote" };

const name = (one) => one.kind === "vote" ? `vote of ${one.voter} in ${one.election}` : `${KINDS[one.kind] ?? one.kind} ${one.key}`;

// A null is a delete; a document that holds null looks the same.
const text = (value) => value === null ? null : JSON.stringify(value);
const brief = (value) => value === null ? h("span", { class: "faint" }, "deleted") : short(value);
const about = (one) => `written on the side of node ${one.node}, in epoch ${one.epoch}`;

export function conflicts() {
  async function open(id) {
    const one = exact(await (await send("GET", `/v1/explain/conflicts/${encode(id)}`)).text());
    const settle = async (word, title, warning, yes, done) => {
      const said = await ask(title, h("p", {}, warning), yes, async () => {
        try {
          await carryOut("POST", `/v1/conflicts/${encode(one.id)}/${word}`, undefined, { advice: AGAIN });
          return done;
        } catch (error) {
          if (error.status !== 404) throw error;
          return `The conflict about the ${name(one)} is settled: by an earlier attempt, or by another operator.`;
        }
      }, { danger: true });
      if (said) await view.close(said);
    };
    const actions = can("write", "docs") ? [
      button("Restore the lost value", () => settle("apply", `Restore the lost value of ${name(one)}?`,
        "It replaces the current value, also if that has changed since the merge.", "Restore", `Restored the lost value of ${name(one)}.`), { "data-apply": true }),
      button("Drop the lost value", () => settle("drop", `Drop the lost value of ${name(one)}?`,
        "The current value stays, and the lost one is gone for good.", "Drop", `Dropped the lost value of ${name(one)}.`), { class: "danger", "data-drop": true })] : null;
    view.show(
      h("h3", { tabindex: -1 }, `Conflict about the ${name(one)}`),
      h("p", {}, one.says[0]),
      h("p", {}, `${short(one.says[2], 400)}.`),
      h("p", { class: "faint" }, "Merged ", ago(one.at), `, in record ${one.merged_at}. Lines that differ are marked.`),
      sides(["Kept", about(one.kept), text(one.kept.value)], ["Lost", about(one.lost), text(one.lost.value)]),
      actions ? "" : h("p", {}, "You may look at this conflict, but not settle it: that needs the grant \"write docs\"."),
      h("div", { class: "row" }, actions ?? "", button("Back to the list", () => view.close())));
  }
  const list = listing({
    caption: "Values that lost when two sides merged", path: "/v1/conflicts", prefix: false, kinds: ["conflict", "new_state"], empty: EMPTY,
    heads: ["about", "kept", "lost", "merged", "compare"],
    row: (one) => [name(one), brief(one.kept.value), brief(one.lost.value), ago(one.at), button("Compare", () => open(one.id), { "aria-label": `Compare ${one.id}` })],
  });
  const view = opened(list);
  return { ...list, element: view.element };
}
