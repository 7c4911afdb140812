// Live events. The feed begins when the view is opened and ends when it is left.

import { lines } from "./api.js";
import { h, short } from "./dom.js";

const SHOWN = 200;

export function feed() {
  const list = h("ol", { class: "steps", reversed: true });
  const state = h("p", { role: "status" }, "Reading the feed.");
  let end = null;
  let since = null;
  async function follow() {
    end = new AbortController();
    try {
      const query = since ? `&since=${encodeURIComponent(since)}` : "";
      for await (const line of lines(`/v1/feed?format=ndjson${query}`, end.signal)) {
        const event = JSON.parse(line);
        since = event.id ?? since;
        if (event.kind === "bookmark") continue;
        const { id, kind, ...rest } = event;
        list.prepend(h("li", {}, h("strong", {}, kind), ` ${short(rest, 400)} `, h("span", { class: "faint" }, id ?? "")));
        while (list.children.length > SHOWN) list.lastElementChild.remove();
      }
      state.textContent = "The feed has ended; reconnecting.";
    } catch (error) {
      if (error.status === 410) since = null;
      if (error.name !== "AbortError") state.textContent = `The feed broke off: ${error.message}`;
    }
    end = null;
  }
  return {
    element: h("div", {}, state, list),
    every: 2000,
    async load() {
      if (!end) follow();
    },
    leave() {
      end?.abort();
    },
  };
}
