// Processes that have registered.

import { seconds, short } from "./dom.js";
import { listing } from "./lists.js";

export const processes = () => listing({
  caption: "Registered processes", path: "/v1/processes", prefix: false,
  kinds: ["process_registered", "process_changed", "process_removed"],
  heads: ["id", "identifier", "role", "capabilities", "ends in"],
  row: (one) => [one.id, one.identifier, one.role ?? "–", short(one.capabilities ?? "–"), seconds(one.expires_in_ms)],
});
