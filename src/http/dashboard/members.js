// Members of the cluster: hand-over, adding and removing, each with a question first.

import { order } from "./api.js";
import { cluster } from "./cluster.js";
import { ask, button, field, h, refresh, table } from "./dom.js";

export function members() {
  const place = h("div");
  const said = h("p", { role: "alert" });
  const confirmed = (title, text, yes, work) => ask(title, h("p", {}, text), yes, work, { danger: true });
  const lead = (member) => confirmed(`Hand leadership to ${member.name}?`, "Writes pause for some milliseconds.", "Hand over",
    () => order("POST", "/elect", { node_idx: member.id }));
  const remove = (member) => confirmed(`Remove ${member.name} from the cluster?`,
    "The node stops by itself, and its data directory becomes useless. From then on the cluster tolerates fewer failures.", "Remove",
    () => order("POST", "/v1/members", { remove: member.id }));
  const id = h("input", { name: "id", type: "number", min: 1, required: true });
  const address = h("input", { name: "address", required: true, placeholder: "10.0.0.4:9000" });
  const add = h("form", { onsubmit: (event) => {
    event.preventDefault();
    confirmed(`Add node ${id.value}?`, "It copies the state, and votes when it has caught up.", "Add",
      () => order("POST", "/v1/members", { add: { id: Number(id.value), address: address.value } }));
  } }, field("Id of the new node", id), field("Its address", address), h("button", { type: "submit" }, "Add the node"));
  return {
    element: h("div", {}, said, place, h("h3", {}, "Add a node"), add),
    every: 1000, watches: true,
    async load() {
      const { status } = cluster;
      if (!status) return;
      const leader = status.leader?.id;
      refresh(place, table("Members", ["node", "address", "votes", "leadership", "membership"], status.members.map((member) => [
        member.name, member.url, member.votes ? "yes" : "learns",
        button("Hand over", () => lead(member), { disabled: member.id === leader, "aria-label": `Hand over to ${member.name}` }),
        button("Remove", () => remove(member), { class: "danger", "aria-label": `Remove ${member.name}` }),
      ])));
    },
  };
}
