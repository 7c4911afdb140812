// Why a node leads, in the words of `eldest why`.

import { cluster } from "./cluster.js";
import { clock } from "./dom.js";

const capital = (text) => text.slice(0, 1).toUpperCase() + text.slice(1);
export const sentence = (text) => `${capital(text)}.`;

// For how long each node knew no leader.
function without(change) {
  const name = (id) => cluster.status?.members.find((member) => member.id === Number(id))?.name ?? `node ${id}`;
  const each = Object.entries(change.leaderless_ms_by_node ?? {}).map(([id, ms]) => `${name(id)} for ${ms} ms`);
  return each.length ? `Without a leader: ${each.join(", ")}.` : null;
}

// The sentences about a change of leader, apart from who leads.
export function because(change) {
  const former = change.previous_leader?.name;
  const cause = change.because ? `Because ${change.because}.`
    : former ? `Before it ${former} led; the nodes that answered do not know why it leads no longer.` : "The nodes that answered remember no leader before.";
  return [cause, ...(change.previous_leader_says ?? []).map((said) => `${said}.`), without(change)].filter(Boolean);
}

// Returns sentences: which node leads, since when and why, or why none does.
export function leading({ leader, changes, lost_because, nobody_leads_because }) {
  if (!leader) {
    return ["There is no leader now, according to the nodes that answered.",
      lost_because ? `The last one is lost because ${lost_because}.` : null,
      ...nobody_leads_because.map((advice) => `${advice.name} says: ${advice.says}`)].filter(Boolean);
  }
  const change = changes[0]?.epoch === leader.epoch ? changes[0] : null;
  if (!change) return [`${leader.name} leads, in epoch ${leader.epoch}. The nodes that answered do not remember since when.`];
  return [`${leader.name} leads, in epoch ${leader.epoch}, since ${clock(change.at)}.`, ...because(change)];
}
