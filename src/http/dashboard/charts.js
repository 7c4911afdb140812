// Rates and latencies of the last minute, from the metrics of the leader.

import { asked, metrics } from "./api.js";
import { cluster } from "./cluster.js";
import { h, svg } from "./dom.js";

const SAMPLES = 60;
const OLDEST_MS = 61_000;
const PATIENCE = 2000;
const COMMIT = "eldest_commit_duration_seconds";
const BUCKET = /^eldest_commit_duration_seconds_bucket\{le="([^"]+)"\}$/;

const samples = [];
let from = null;

// Takes the metrics of the leader, or those of the node that is asked if this browser does not reach the leader.
export async function sample() {
  const leader = cluster.status?.leader?.url;
  let [at, found] = [leader ?? asked(), null];
  try { found = await metrics({ at, patience: PATIENCE }); } catch { at = asked(); }
  found ??= await metrics({ patience: PATIENCE });
  const [count, index] = [found.get(`${COMMIT}_count`) ?? 0, found.get("eldest_commit_index") ?? 0];
  // A process that has started again counts from 0.
  if (at !== from || count < samples.at(-1)?.count || index < samples.at(-1)?.index) samples.length = 0;
  from = at;
  const buckets = [];
  for (const [name, count] of found) {
    const le = BUCKET.exec(name)?.[1];
    if (le) buckets.push([le === "+Inf" ? Infinity : Number(le), count]);
  }
  samples.push({ at: performance.now(), index, sum: found.get(`${COMMIT}_sum`) ?? 0,
    count, buckets, leaderless: found.get("eldest_leaderless_seconds_total") ?? 0 });
  // Samples are taken only while the overview is open, so some may be old.
  while (samples[0].at < samples.at(-1).at - OLDEST_MS) samples.shift();
}

const pairs = () => samples.slice(1).map((now, number) => [samples[number], now]);
const rates = () => pairs().map(([before, now]) => Math.max(0, (now.index - before.index) / ((now.at - before.at) / 1000)));
const latencies = () => pairs().map(([before, now]) => now.count > before.count ? ((now.sum - before.sum) / (now.count - before.count)) * 1000 : null);

// The latency in ms that this share of the last minute's commits kept below, to within the width of a bucket. Null if there were none.
export function quantile(share) {
  const [first, last] = [samples[0], samples.at(-1)];
  const total = samples.length ? last.count - first.count : 0;
  if (total <= 0) return null;
  let [below, least] = [0, 0];
  for (const [number, [le, count]] of last.buckets.entries()) {
    const sum = count - (first.buckets[number]?.[1] ?? 0);
    if (sum >= total * share) return (le === Infinity ? least : least + (le - least) * ((total * share - below) / (sum - below))) * 1000;
    [below, least] = [sum, le];
  }
  return null;
}

export const leaderless = () => samples.at(-1)?.leaderless ?? null;

function chart(title, values, unit) {
  const known = values.filter((value) => value !== null);
  const most = Math.max(...known, 1);
  // The newest is at the right.
  const point = (value, number) => `${((SAMPLES - values.length + number) / (SAMPLES - 1)) * 100},${38 - (value / most) * 36}`;
  const points = values.map((value, number) => value === null ? null : point(value, number)).filter(Boolean).join(" ");
  const last = known.length ? `${known.at(-1).toFixed(1)} ${unit}` : "no data yet";
  const top = known.length ? `, at most ${Math.max(...known).toFixed(1)} ${unit} in the last minute` : "";
  return h("figure", {},
    svg("svg", { viewBox: "0 0 100 40", preserveAspectRatio: "none", "aria-hidden": "true" }, svg("polyline", { points })),
    h("figcaption", {}, `${title}: `, h("b", {}, last), top));
}

export const charts = () => h("div", { class: "charts" }, chart("Writes", rates(), "/s"), chart("Time to commit", latencies(), "ms"));

export const rate = () => rates().at(-1) ?? null;
