// Calls to the node that served this page, for the user who has signed in. The token stays in this tab.

const KEY = "eldest-token";
const PATIENCE_MS = 8000;

export class Refused extends Error {
  constructor(status, problem) {
    super(problem.detail ?? problem.title ?? `the node answered ${status}`);
    this.status = status;
    this.problem = problem;
  }
}

export const signedIn = () => sessionStorage.getItem(KEY) !== null;
export const signIn = (token) => sessionStorage.setItem(KEY, token);
export const signOut = () => sessionStorage.removeItem(KEY);

export async function send(method, path, { body, headers = {}, signal } = {}) {
  const token = sessionStorage.getItem(KEY);
  const all = { ...headers };
  if (token) all.authorization = `Bearer ${token}`;
  if (body !== undefined) all["content-type"] ??= "application/json";
  const given = body === undefined || typeof body === "string" ? body : JSON.stringify(body);
  const options = { method, headers: all, body: given, cache: "no-store", redirect: "error" };
  const response = await fetch(path, { ...options, signal: signal ?? AbortSignal.timeout(PATIENCE_MS) });
  if (response.ok) return response;
  let problem = {};
  try { problem = await response.json(); } catch { /* not every proxy writes one */ }
  // The answer to a call made before signing in says nothing about the present token.
  const isOfNow = token === sessionStorage.getItem(KEY);
  if (response.status === 401 && isOfNow) document.dispatchEvent(new CustomEvent("unauthorized", { detail: problem.detail }));
  throw new Refused(response.status, problem);
}

// An integer that JavaScript cannot hold keeps its digits, if the browser can show them: otherwise two values might
// look the same.
const inFull = (key, value, { source } = {}) =>
  typeof value === "number" && Number.isInteger(value) && !Number.isSafeInteger(value) && source && JSON.rawJSON ? JSON.rawJSON(source) : value;

export async function get(path) {
  return JSON.parse(await (await send("GET", path)).text(), inFull);
}

export async function order(method, path, body, headers) {
  const text = await (await send(method, path, { body, headers })).text();
  return text ? JSON.parse(text) : null;
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
export async function metrics() {
  const text = await (await send("GET", "/metrics")).text();
  const samples = new Map();
  for (const line of text.split("\n")) {
    const at = line.lastIndexOf(" ");
    if (line && !line.startsWith("#")) samples.set(line.slice(0, at), Number(line.slice(at + 1)));
  }
  return samples;
}
