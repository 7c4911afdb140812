// Values that merges overrode: both values side by side, to apply again or to drop.

import { encode, order } from "./api.js";
import { ask, button, h, short } from "./dom.js";
import { listing } from "./lists.js";

const side = (title, one) => h("div", {}, h("h3", {}, title),
  h("p", { class: "faint" }, `written on the side of node ${one.node}, in epoch ${one.epoch}`), h("pre", {}, JSON.stringify(one.value, null, 2)));

export function conflicts() {
  const place = h("section", { "aria-live": "polite" });
  function open(one, reload) {
    const settle = (word, question) => ask(question, h("p", {}, one.id), word === "apply" ? "Restore" : "Drop", async () => {
      await order("POST", `/v1/conflicts/${encode(one.id)}/${word}`);
      place.replaceChildren(h("p", {}, "Done."));
      await reload();
    }, { danger: true });
    place.replaceChildren(h("h3", {}, one.id), h("div", { class: "sides" }, side("Kept", one.kept), side("Lost", one.lost)),
      h("div", { class: "row" },
        button("Restore the lost value", () => settle("apply", "Replace the current value with the lost one?")),
        button("Drop the lost value", () => settle("drop", "Drop the lost value?"), { class: "danger" })));
  }
  const list = listing({
    caption: "Values that lost when two sides merged (available mode)", path: "/v1/conflicts", prefix: false, kinds: ["conflict"],
    heads: ["id", "kept", "lost", "when", "compare"],
    row: (one, load) => [one.id, short(one.kept.value), short(one.lost.value), one.at, button("Compare", () => open(one, load), { "aria-label": `Compare ${one.id}` })],
  });
  list.element.append(place);
  return list;
}
