// The cluster as this page knows it. It asks one node, and that node's feed says when to ask again. When the node does not
// answer, the page goes on with another one.

import { Refused, asked, get, home, lines, send, signedIn, use } from "./api.js";
import { mayWatch } from "./rights.js";

const STATUS_EVERY = 1000;
const EXPLAIN_EVERY = 3000;
const LOST_EVERY_MOST = 8000;
// A node answers these from memory, or asks the others for a second at most.
const PATIENCE = 2500;
const EXPLAIN_PATIENCE = 5000;
const FEED_PAUSE = 1000;
// A feed without news sends a bookmark every 5 seconds.
const FEED_SILENCE = 12_000;

// Events after which the cluster looks different.
const OF_CLUSTER = ["new_leader", "new_state", "members_changed", "service_down", "service_up", "election_started", "election_completed",
  "merge_called_off"];

// `lostSince` is when the last answer came, while no node answers. `refused` is the refusal, if the node does not tell this caller its
// status: it is not asked for that again before the user signs in, because a node counts wrong tokens and refuses an address that shows many.
// `known` are the addresses that the page may call: its policy was made when it was loaded.
export const cluster = { status: null, explained: null, explainedAt: null, caller: null, answered: null, lostSince: null, movedAt: null, tried: [],
  trouble: null, refused: null, live: false, known: null };

const changed = () => document.dispatchEvent(new Event("cluster"));

// Waits for this time, or until `wake` is called.
function waiting() {
  let end = () => {};
  const wait = (ms) => new Promise((done) => {
    const timer = setTimeout(done, ms);
    end = () => { clearTimeout(timer); done(); };
  });
  return [wait, () => end()];
}

const [untilLook, wakeLook] = waiting();
const [untilExplain, wakeExplain] = waiting();
const [untilFeed, wakeFeed] = waiting();
let pause = STATUS_EVERY;

const urls = (status) => status.members.map((member) => member.url);

function took(status) {
  const before = cluster.status;
  cluster.known ??= urls(status);
  Object.assign(cluster, { status, answered: new Date(), lostSince: null, tried: [], trouble: null, refused: null });
  if (!cluster.caller) learnCaller();
  pause = STATUS_EVERY;
  if (before?.leader?.id !== status.leader?.id || before?.epoch !== status.epoch) wakeExplain();
  changed();
}

const addresses = () => [...new Set([home, ...(cluster.status ? urls(cluster.status) : [])])];
const isRefusal = (error) => error instanceof Refused && (error.status === 401 || error.status === 403);

function moveTo(url) {
  use(url);
  cluster.movedAt = new Date();
}

// The node does not tell this caller its status.
function refuse(error) {
  Object.assign(cluster, { answered: new Date(), lostSince: null, tried: [], trouble: error.message, refused: error });
  end?.abort();
  changed();
  if (error.status === 401) document.dispatchEvent(new CustomEvent("unauthorized", { detail: signedIn() ? error.message : "" }));
}

// A caller who may not see the status learns only that the node lives.
async function isThere(url) {
  await send("GET", "/livez", { at: url, patience: PATIENCE });
  Object.assign(cluster, { answered: new Date(), lostSince: null, tried: [] });
  pause = STATUS_EVERY;
  changed();
}

// Asks all other nodes, and goes on with the first that answers and is of the same cluster.
async function goOn() {
  cluster.lostSince ??= cluster.answered ?? new Date();
  cluster.live = false;
  changed();
  const others = addresses().filter((url) => url !== asked());
  const look = async (url) => {
    if (cluster.refused) return { url, status: await isThere(url) };
    const status = await get("/v1/status", { at: url, patience: PATIENCE });
    if (status.cluster_id !== cluster.status.cluster_id) throw new Error("another cluster");
    return { url, status };
  };
  try {
    const { url, status } = await Promise.any(others.map(look));
    moveTo(url);
    if (status) took(status);
    restartFeed();
    wakeExplain();
    changed();
  } catch ({ errors }) {
    const number = errors.findIndex(isRefusal);
    if (number >= 0) {
      moveTo(others[number]);
      return refuse(errors[number]);
    }
    cluster.tried = [asked(), ...others];
    pause = Math.min(pause * 2, LOST_EVERY_MOST);
    changed();
  }
}

async function askNode() {
  if (cluster.refused) await isThere(asked());
  else took(await get("/v1/status", { patience: PATIENCE }));
}

// A browser breaks off all calls when its network changes. So a call that fails at once is made again before the node is given up.
const askAgain = (error) => {
  if (error.name !== "TypeError") throw error;
  return askNode();
};

async function look() {
  try {
    await askNode().catch(askAgain);
  } catch (error) {
    if (!(error instanceof Refused)) return goOn();
    if (!error.isOfNow) return;
    if (isRefusal(error)) return refuse(error);
    Object.assign(cluster, { answered: new Date(), lostSince: null, tried: [], trouble: error.message });
    changed();
  }
}

async function explain() {
  if (cluster.refused || cluster.lostSince) return;
  try {
    cluster.explained = await get("/v1/explain/leader?limit=50", { patience: EXPLAIN_PATIENCE });
    cluster.explainedAt = new Date();
    changed();
  } catch { /* the status says what is wrong */ }
}

async function repeat(work, wait, every) {
  for (;;) {
    try {
      if (!document.hidden) await work();
    } catch (error) {
      // A mistake in this page must not stop the watch.
      cluster.trouble = error.message;
      changed();
    }
    await wait(every());
  }
}

async function askCaller() {
  try { cluster.caller = await get("/v1/caller"); } catch { cluster.caller = null; }
  changed();
  wakeFeed();
}

let asking = null;

// Asks what the caller may do, once at a time. A node that is too busy to say it is asked again.
export function learnCaller() {
  asking ??= askCaller().finally(() => { asking = null; });
  return asking;
}

let kinds = [];
let heard = () => {};
let end = null;
let since = null;
let last = 0;

// Passes events of these kinds to the view. Those of the cluster are read in any case.
export function follow(wanted, tell) {
  const differs = wanted.join() !== kinds.join();
  [kinds, heard] = [wanted, tell];
  if (differs) restartFeed();
}

let restarts = false;

function restartFeed() {
  restarts = true;
  end?.abort();
  wakeFeed();
}

function hear(event) {
  since = event.id ?? since;
  last = Date.now();
  if (!cluster.live) {
    cluster.live = true;
    changed();
  }
  if (OF_CLUSTER.includes(event.kind)) {
    wakeLook();
    wakeExplain();
  }
  if (kinds.includes(event.kind)) heard(event);
}

async function listen() {
  restarts = false;
  if (cluster.lostSince || cluster.refused || !mayWatch()) return;
  end = new AbortController();
  const query = new URLSearchParams({ format: "ndjson", kinds: [...new Set([...OF_CLUSTER, ...kinds])].join() });
  if (since) query.set("since", since);
  try {
    for await (const line of lines(`/v1/feed?${query}`, end.signal)) hear(JSON.parse(line));
  } catch (error) {
    // This position is no longer kept: everything is read again anyway.
    if (error.status === 410) since = null;
  }
  end = null;
  if (cluster.live && !restarts) {
    cluster.live = false;
    changed();
  }
}

const wakeAll = () => {
  wakeLook();
  wakeExplain();
  restartFeed();
};

// Begins again for a caller who has signed in.
export function forNewCaller() {
  Object.assign(cluster, { caller: null, trouble: null, refused: null });
  wakeAll();
}

export function begin() {
  document.addEventListener("visibilitychange", () => {
    if (document.hidden) end?.abort();
    else wakeAll();
  });
  setInterval(() => { if (end && cluster.live && Date.now() - last > FEED_SILENCE) end.abort(); }, FEED_PAUSE);
  repeat(look, untilLook, () => pause);
  repeat(explain, untilExplain, () => EXPLAIN_EVERY);
  repeat(listen, untilFeed, () => restarts && !document.hidden ? 0 : FEED_PAUSE);
}
