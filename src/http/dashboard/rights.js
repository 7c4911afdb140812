// The rights of the caller, by its grants. Actions that a node would refuse are not shown.

import { cluster } from "./cluster.js";

// Reads a grant: `order`, or verbs, an area and the prefix of names within it, as `read,write docs/app/`.
function read(grant) {
  if (grant === "order") return { verbs: ["order"], area: "*", prefix: "" };
  const [verbs, what] = [grant.slice(0, grant.indexOf(" ")), grant.slice(grant.indexOf(" ") + 1)];
  const slash = what.indexOf("/");
  const [area, prefix] = slash < 0 ? [what, ""] : [what.slice(0, slash), what.slice(slash + 1)];
  return { verbs: verbs.split(","), area, prefix };
}

const granted = (verb, area) => (cluster.caller?.grants ?? []).map(read)
  .filter((grant) => grant.verbs.includes(verb) && (grant.area === "*" || area === undefined || grant.area === area));

// Whether the caller has this verb on the name, or on all names of the area.
export const can = (verb, area, name = "") => granted(verb, area).some((grant) => name.startsWith(grant.prefix));

export const mayOrder = () => can("order");

export const mayWatch = () => granted("watch").length > 0;

// The prefixes of the names on which the caller has this verb. The empty one stands for all.
export const prefixes = (verb, area) => granted(verb, area).map((grant) => grant.prefix);
