// JSON as text: laid out over lines, and two values compared line by line. As numbers of JavaScript, numbers would lose digits.

import { h } from "./dom.js";

const TOKEN = /"(?:[^"\\]|\\.)*"|[{}[\],:]|[^\s{}[\],:"]+/g;
const INDENT = "  ";
// Beyond this many pairs of lines the middle is not compared.
const PAIRS_MOST = 1_000_000;
// Longer runs of equal lines are left out.
const EQUAL_MOST = 7;

const tokens = (text) => text.match(TOKEN) ?? [];
const opens = (token) => token === "{" || token === "[";
const closes = (token) => token === "}" || token === "]";

export const compact = (text) => tokens(text).join("");

export function pretty(text) {
  let depth = 0;
  const line = () => `\n${INDENT.repeat(depth)}`;
  return tokens(text).map((token, at, all) => {
    if (opens(token)) {
      depth += 1;
      return closes(all[at + 1]) ? token : token + line();
    }
    if (closes(token)) {
      depth -= 1;
      return opens(all[at - 1]) ? token : line() + token;
    }
    return token === "," ? token + line() : token === ":" ? ": " : token;
  }).join("");
}

// Reads JSON. A number that JavaScript would write differently keeps its digits, if the browser can do that.
export const exact = (text) => JSON.parse(text, (key, value, { source } = {}) =>
  typeof value === "number" && source && String(value) !== source && JSON.rawJSON ? JSON.rawJSON(source) : value);

// The lines of both texts in pairs: equal ones beside each other, and null where only the other text has a line.
export function compare(left, right) {
  let head = 0;
  while (head < left.length && left[head] === right[head]) head += 1;
  let tail = 0;
  while (tail < Math.min(left.length, right.length) - head && left.at(-1 - tail) === right.at(-1 - tail)) tail += 1;
  const same = (lines) => lines.map((line) => [line, line]);
  const middle = pairs(left.slice(head, left.length - tail), right.slice(head, right.length - tail));
  return [...same(left.slice(0, head)), ...middle, ...same(left.slice(left.length - tail))];
}

// The longest common subsequence of lines.
function pairs(left, right) {
  const beside = (some, others) => Array.from({ length: Math.max(some.length, others.length) }, (_, at) => [some[at] ?? null, others[at] ?? null]);
  if (left.length * right.length > PAIRS_MOST) return beside(left, right);
  const length = left.map(() => null).concat(null).map(() => new Uint32Array(right.length + 1));
  for (let l = left.length - 1; l >= 0; l -= 1) {
    for (let r = right.length - 1; r >= 0; r -= 1) {
      length[l][r] = left[l] === right[r] ? length[l + 1][r + 1] + 1 : Math.max(length[l + 1][r], length[l][r + 1]);
    }
  }
  const found = [];
  let [l, r, lefts, rights] = [0, 0, [], []];
  while (l < left.length || r < right.length) {
    if (l < left.length && r < right.length && left[l] === right[r]) {
      found.push(...beside(lefts, rights), [left[l], right[r]]);
      [l, r, lefts, rights] = [l + 1, r + 1, [], []];
    } else if (r === right.length || (l < left.length && length[l + 1][r] >= length[l][r + 1])) lefts.push(left[l++]);
    else rights.push(right[r++]);
  }
  return [...found, ...beside(lefts, rights)];
}

// Leaves out long runs of equal lines, except for their ends.
function shortened(rows) {
  const shown = [];
  for (let at = 0; at < rows.length;) {
    let end = at;
    while (end < rows.length && rows[end][0] === rows[end][1]) end += 1;
    if (end - at > EQUAL_MOST) {
      const note = `… ${end - at - 4} equal lines …`;
      shown.push(...rows.slice(at, at + 2), [note, note], ...rows.slice(end - 2, end));
    } else shown.push(...rows.slice(at, end));
    if (end < rows.length) shown.push(rows[end]);
    at = end + 1;
  }
  return shown;
}

// Two values beside each other. Lines that differ are marked.
export function sides([leftTitle, leftAbout, left], [rightTitle, rightAbout, right]) {
  const lines = (text) => text === null ? ["(deleted)"] : pretty(text).split("\n");
  const rows = shortened(compare(lines(left), lines(right)));
  const shown = (which) => h("pre", {}, rows.map((row) => {
    const line = row[which];
    return row[0] === row[1] ? `${line}\n` : line === null ? h("span", { class: "absent" }, "\n") : h("mark", {}, `${line}\n`);
  }));
  const side = (title, about, which, name) => h("div", { "data-side": name }, h("h4", {}, title), h("p", { class: "faint" }, about), shown(which));
  return h("div", { class: "sides" }, side(leftTitle, leftAbout, 0, "left"), side(rightTitle, rightAbout, 1, "right"));
}
