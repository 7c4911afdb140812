// Elections with their tallies, and users.

import { h, short } from "./dom.js";
import { listing } from "./lists.js";

const users = () => listing({
  caption: "Users", path: "/v1/users", area: "users", heads: ["name", "group", "further members"], empty: "There are no users.",
  row: ({ name, group, ...more }) => [name, group ?? "–", Object.keys(more).length ? short(more) : "–"],
});

const percent = (count, votes) => votes ? `${Math.round(count / votes * 100)} %` : "–";

function bars(one) {
  const choices = Object.entries(one.tally ?? {});
  const most = Math.max(0, ...choices.map(([, count]) => count));
  return h("ul", { class: "tally" }, choices.map(([choice, count]) => h("li", {},
    h("span", {}, count === most && count > 0 ? h("strong", {}, choice) : choice),
    h("meter", { min: 0, max: Math.max(1, one.votes), value: count, "aria-label": `${choice}: ${count} of ${one.votes} votes` }),
    h("span", { class: "count" }, `${count} (${percent(count, one.votes)})`))));
}

function ends(one) {
  if (!one.end_date) return "open";
  const at = new Date(one.end_date);
  return h("time", { datetime: one.end_date }, `${at < new Date() ? "ended" : "ends"} ${at.toLocaleString(undefined, { dateStyle: "medium", timeStyle: "short" })}`);
}

const tallies = () => listing({
  caption: "Elections and their tallies", path: "/v1/elections", area: "elections", heads: ["name", "tally", "votes", "for", "ends"],
  empty: "There are no elections.",
  row: (one) => [one.name, bars(one), one.votes, one.groups ? one.groups.join(", ") : "everybody", ends(one)],
});

export function elections() {
  const lists = [tallies(), users()];
  return {
    element: h("div", {}, lists.map((list) => list.element)), every: 2000, kinds: ["change", "new_state"],
    async load() {
      await Promise.all(lists.map((list) => list.load()));
    },
  };
}
