// Elections with their tallies, and users.

import { h, short } from "./dom.js";
import { listing } from "./lists.js";

const users = () => listing({
  caption: "Users", path: "/v1/users", area: "users", heads: ["name", "group", "more"],
  row: ({ name, group, ...more }) => [name, group ?? "–", Object.keys(more).length ? short(more) : "–"],
});

const tallies = () => listing({
  caption: "Elections and their tallies", path: "/v1/elections", area: "elections", heads: ["name", "tally", "votes", "for", "ends"],
  row: (one) => [one.name, Object.entries(one.tally ?? {}).map(([choice, count]) => `${choice}: ${count}`).join(", "), one.votes,
    one.groups ? one.groups.join(", ") : "everybody", one.end_date ?? "–"],
});

export function elections() {
  const lists = [tallies(), users()];
  return {
    element: h("div", {}, lists.map((list) => list.element)), every: 2000, kinds: ["change"],
    async load() {
      await Promise.all(lists.map((list) => list.load()));
    },
  };
}
