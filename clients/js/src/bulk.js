// Many commands at once: lines of a stream, each a separate call under its own key.

import { Backoff, rest } from './clock.js';
import { Indeterminate, Unavailable, problem } from './errors.js';
import { encoded } from './shape.js';
import { randomId } from './signals.js';

/** A node decides this many at once. More would only wait there, and would be sent again if one of them has to be. */
const LINES_MOST = 1024;
const BYTES_MOST = 1 << 20;

const encoder = new TextEncoder();

/** Surely not done, so the line may be sent again; and of unknown outcome, where its key makes a retry safe. */
const NOT_DONE = new Set([408, 421, 429, 503]);
const MAYBE_DONE = new Set([502, 504]);

function* chunks(commands) {
  let [chunk, bytes] = [[], 0];
  for (const [place, { storage_cmd, payload }] of commands.entries()) {
    const text = `${encoded({ storage_cmd, payload, idempotency_key: randomId() })}\n`;
    const size = encoder.encode(text).length;
    if (chunk.length > 0 && (chunk.length === LINES_MOST || bytes + size > BYTES_MOST)) {
      yield chunk;
      [chunk, bytes] = [[], 0];
    }
    chunk.push({ place, text, unknown: false, last: null });
    bytes += size;
  }
  if (chunk.length > 0) yield chunk;
}

export async function bulk(transport, commands, { deadlineMs = transport.deadlineMs, signal } = {}) {
  const told = Array.from(commands, () => new Unavailable('it was not sent'));
  for (const chunk of chunks(commands)) {
    const [backoff, ends] = [new Backoff(), transport.clock.now() + deadlineMs];
    for (let left = chunk; ; ) {
      left = await send(transport, left, told, { deadlineMs, signal });
      if (left.length === 0) break;
      const pause = backoff.next();
      if (transport.clock.now() + pause >= ends) {
        for (const line of left) told[line.place] = givenUp(line);
        return told;
      }
      await rest(transport.clock, pause, signal);
    }
  }
  return told;
}

/** Sends the lines once more, and returns those that have to be retried. */
async function send(transport, lines, told, options) {
  const spec = { method: 'POST', path: '/v1/commands', lines: lines.map(({ text }) => text).join(''), ...options };
  let answers;
  try {
    answers = (await transport.call(spec)).body;
  } catch (error) {
    options.signal?.throwIfAborted();
    if (error instanceof Indeterminate || error instanceof Unavailable) {
      for (const line of lines) Object.assign(line, { unknown: line.unknown || error instanceof Indeterminate, last: error });
      return lines;
    }
    // A refusal of the whole request says nothing about an attempt whose answer did not come.
    for (const line of lines) told[line.place] = line.unknown ? givenUp({ ...line, last: error }) : error;
    return [];
  }
  return lines.filter((line, number) => {
    const said = answers[number];
    if (said?.index !== undefined) {
      told[line.place] = said;
      return false;
    }
    const again = said?.code === undefined || NOT_DONE.has(said.status) || MAYBE_DONE.has(said.status);
    const error = said?.code === undefined ? new Error('no answer to this line') : problem(said.status, said);
    if (!again) told[line.place] = error;
    Object.assign(line, { unknown: line.unknown || !NOT_DONE.has(said?.status), last: error });
    return again;
  });
}

function givenUp({ unknown, last }) {
  const why = last?.message ?? 'no attempt was made';
  if (unknown) return new Indeterminate(`the command may or may not have happened: ${why}`, { cause: last });
  return new Unavailable(`the command did not happen: ${why}`, { cause: last });
}
