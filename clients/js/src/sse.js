// Server-sent events, read from a body as they come. Nothing is queued here: a reader that does not ask for the next
// event holds the connection back, and the node ends it with `too_slow` when it has to.

import { BadAnswer } from './errors.js';

/** A message is at most 1 MiB of JSON on one line; anything longer than this is no event. */
const FRAME_CHARS_MOST = 8 << 20;
/** A node sends a sign of life after every 5 s of silence. After three times that long the node is as good as dead. */
const SILENCE_MS = 15_000;

/** The node was silent for too long, or ended the stream. */
export class StreamBroken extends Error {}

/** Yields `{event, id, data}` until the stream ends, and throws `StreamBroken` if it falls silent. */
export async function* frames(body, clock, silenceMs = SILENCE_MS) {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  const parser = new Parser();
  try {
    for (;;) {
      const { done, value } = await heard(reader, clock, silenceMs);
      if (done) return;
      yield* parser.push(decoder.decode(value, { stream: true }));
    }
  } finally {
    // The connection may be closed already, and that is fine.
    reader.cancel().catch(() => {});
  }
}

function heard(reader, clock, silenceMs) {
  return new Promise((resolve, reject) => {
    const give_up = () => reject(new StreamBroken(`nothing heard for ${silenceMs} ms`));
    const cancel = clock.after(silenceMs, give_up, { background: true });
    reader.read().then(resolve, reject).finally(cancel);
  });
}

class Parser {
  #rest = '';
  #frame = { event: 'message', id: null, data: null };
  #chars = 0;

  push(text) {
    const lines = (this.#rest + text).split('\n');
    this.#rest = lines.pop();
    const complete = [];
    for (const line of lines) this.#line(line.endsWith('\r') ? line.slice(0, -1) : line, complete);
    if (this.#rest.length + this.#chars > FRAME_CHARS_MOST) throw new BadAnswer('an event without an end');
    return complete;
  }

  #line(line, complete) {
    if (line === '') {
      if (this.#frame.data !== null) complete.push(this.#frame);
      this.#frame = { event: 'message', id: null, data: null };
      this.#chars = 0;
      return;
    }
    const colon = line.indexOf(':');
    if (colon === 0) return;
    const [name, raw] = colon < 0 ? [line, ''] : [line.slice(0, colon), line.slice(colon + 1)];
    const value = raw.startsWith(' ') ? raw.slice(1) : raw;
    this.#chars += value.length;
    if (name === 'data') this.#frame.data = this.#frame.data === null ? value : `${this.#frame.data}\n${value}`;
    else if (name === 'event' || name === 'id') this.#frame[name] = value;
  }
}

/** The JSON of a frame. */
export function json(frame) {
  try {
    return JSON.parse(frame.data);
  } catch (cause) {
    throw new BadAnswer('an event that is not JSON', { cause });
  }
}
