// Elections with their tallies, and users.

import { cluster } from "./cluster.js";
import { h, refresh, short } from "./dom.js";
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

// A list that a caller may be refused while it may read the other one. `load` returns the refusal, or null. The answer to the same
// caller would be the same, so a list that was refused is not asked again for it.
function part(area, list) {
  let refusal = null;
  let caller = null;
  const said = h("div");
  return {
    element: h("div", {}, said, list.element),
    async load() {
      if (refusal && caller && caller === cluster.caller) return refusal;
      try {
        await list.load();
        refusal = null;
      } catch (error) {
        if (error.status !== 401 && error.status !== 403) throw error;
        [refusal, caller] = [error, cluster.caller];
      }
      list.element.hidden = refusal !== null;
      refresh(said, refusal ? h("p", {}, `You may not read ${area}: ${refusal.message}.`) : "");
      return refusal;
    },
  };
}

export function elections() {
  const parts = [part("elections", tallies()), part("users", users())];
  return {
    element: h("div", {}, parts.map((one) => one.element)), every: 2000, kinds: ["change", "new_state"],
    async load() {
      const refusals = await Promise.all(parts.map((one) => one.load()));
      if (refusals.every(Boolean)) throw refusals[0];
    },
  };
}
