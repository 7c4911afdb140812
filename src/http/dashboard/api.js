// Calls to one node, for the user who has signed in.

const KEY = "eldest-token";
const PATIENCE_MS = 8000;

export class Refused extends Error {
  constructor(status, problem) {
    super(problem.detail ?? problem.title ?? `the node answered ${status}`);
    this.status = status;
    this.problem = problem;
  }
}

// The token stays in this tab: in its memory, or until the tab is closed.
let token = sessionStorage.getItem(KEY);

export const signedIn = () => token !== null;

export function signIn(given, keep) {
  token = given;
  if (keep) sessionStorage.setItem(KEY, given);
  else sessionStorage.removeItem(KEY);
}

export function signOut() {
  token = null;
  sessionStorage.removeItem(KEY);
}

// The node that is asked. At first it is the one that served the page.
export const home = location.origin;
let node = home;
export const asked = () => node;
export const use = (url) => { node = url; };

export async function send(method, path, { at = node, body, headers = {}, signal, patience = PATIENCE_MS } = {}) {
  const used = token;
  const all = { ...headers };
  if (used) all.authorization = `Bearer ${used}`;
  if (body !== undefined) all["content-type"] ??= "application/json";
  const given = body === undefined || typeof body === "string" ? body : JSON.stringify(body);
  const options = { method, headers: all, body: given, cache: "no-store", redirect: "error" };
  const response = await fetch(at + path, { ...options, signal: signal ?? AbortSignal.timeout(patience) });
  if (response.ok) return response;
  let problem = {};
  try { problem = await response.json(); } catch { /* not every proxy writes one */ }
  // The answer to a call made before signing in says nothing about the present token.
  const refused = new Refused(response.status, problem);
  refused.isOfNow = used === token;
  throw refused;
}

// An integer that JavaScript cannot hold keeps its digits, if the browser can show them: otherwise two values might
// look the same.
const inFull = (key, value, { source } = {}) =>
  typeof value === "number" && Number.isInteger(value) && !Number.isSafeInteger(value) && source && JSON.rawJSON ? JSON.rawJSON(source) : value;

export async function get(path, options) {
  return JSON.parse(await (await send("GET", path, options)).text(), inFull);
}

export const encode = (name) => encodeURIComponent(name);

// The lines of an endless answer, until it ends or is aborted.
export async function* lines(path, signal) {
  const response = await send("GET", path, { signal });
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    const parts = (rest + value).split("\n");
    rest = parts.pop();
    yield* parts.filter((line) => line.trim() !== "");
  }
}

// The samples of a page of metrics, by name and labels.
export async function metrics(options) {
  const text = await (await send("GET", "/metrics", options)).text();
  const samples = new Map();
  for (const line of text.split("\n")) {
    const at = line.lastIndexOf(" ");
    if (line && !line.startsWith("#")) samples.set(line.slice(0, at), Number(line.slice(at + 1)));
  }
  return samples;
}
