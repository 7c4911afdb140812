// The last changes of leadership, with their causes and steps.

import { h, refresh } from "./dom.js";

function change(one) {
  const took = one.leaderless_ms == null ? "" : `, after ${one.leaderless_ms} ms without a leader`;
  const steps = one.steps.map((step) => h("li", {}, h("time", { datetime: step.at }, step.at), ` ${step.says}`));
  return h("li", {},
    h("p", {}, h("strong", {}, `${one.leader?.name ?? "?"} leads, in epoch ${one.epoch}`), took, " ", h("time", { class: "faint" }, one.at ?? "")),
    one.because ? h("p", {}, `because ${one.because}`) : null,
    h("details", { "data-epoch": one.epoch }, h("summary", {}, `${steps.length} steps`), h("ol", { class: "steps" }, steps)));
}

export function show(place, { explained }) {
  if (!explained) return;
  const open = new Set([...place.querySelectorAll("details[open]")].map((one) => one.dataset.epoch));
  const silent = explained.silent.map((one) => h("p", { class: "warn" }, `${one.name} did not answer: ${one.why}`));
  refresh(place, ...silent, h("ol", { class: "changes" }, explained.changes.map(change)));
  for (const one of place.querySelectorAll("details")) one.open = open.has(one.dataset.epoch);
}
