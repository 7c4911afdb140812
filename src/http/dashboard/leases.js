// Leases: the time that is left, counted down between two answers of the leader.

import { cluster } from "./cluster.js";
import { h } from "./dom.js";

const SECOND = 1000;
const UNITS = [["day", 86_400], ["h", 3600], ["min", 60], ["s", 1]];

// A time in its two greatest units: 12 s, 3 min 20 s, 4 days 2 h.
export function span(ms) {
  let rest = Math.round(ms / SECOND);
  const parts = [];
  for (const [unit, size] of UNITS) {
    const count = Math.floor(rest / size);
    if (count && parts.length < 2) parts.push(`${count} ${unit}${unit === "day" && count > 1 ? "s" : ""}`);
    rest %= size;
  }
  return parts.join(" ") || "0 s";
}

const left = (until) => until > Date.now() ? span(until - Date.now()) : "over";

// The time that is left by now. Only the leader knows it, so it may be unknown.
export const countdown = (ms) => ms == null ? "–" : h("span", { class: "left", "data-until": Date.now() + ms }, left(Date.now() + ms));

// While no node answers, nothing is known about renewals.
setInterval(() => {
  if (cluster.lostSince || document.hidden) return;
  for (const one of document.querySelectorAll("[data-until]")) one.textContent = left(Number(one.dataset.until));
}, SECOND);
