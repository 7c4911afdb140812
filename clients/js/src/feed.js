// The feed: every change, in order, from any node. If the stream ends, it goes on at another node.

import { Backoff, rest } from './clock.js';
import { BadAnswer, Problem } from './errors.js';
import { frames, json, StreamBroken } from './sse.js';
import { linked } from './signals.js';

/** Problems that another attempt may not meet; the caller has to settle all others. */
function passes(error) {
  if (error instanceof BadAnswer) return false;
  return !(error instanceof Problem) || error.status >= 500 || error.status === 421 || error.status === 429;
}

/** A stream that is reopened whenever it ends. `Feed` and `Listener` decide what it yields. */
class Reopened {
  #transport;
  #link;
  #events;

  constructor(transport, options) {
    this.#transport = transport;
    this.options = options;
    this.#link = linked(options.signal);
    this.#events = this.#run();
  }

  [Symbol.asyncIterator]() {
    return this;
  }

  next() {
    return this.#events.next();
  }

  /** Ends the iteration, even if it waits for its next event. */
  async return(value) {
    this.#link.dispose();
    this.#link.controller.abort();
    await this.#events.return();
    return { done: true, value };
  }

  close() {
    return this.return().then(() => {});
  }

  async *#run() {
    try {
      yield* this.#again(this.#link.signal);
    } finally {
      this.#link.dispose();
    }
  }

  async *#again(signal) {
    const backoff = new Backoff();
    while (!signal.aborted) {
      let error;
      try {
        yield* this.#once(signal, backoff);
        error = new StreamBroken('the node ended the stream');
      } catch (thrown) {
        if (signal.aborted) return;
        if (!passes(thrown)) throw thrown;
        error = thrown;
      }
      if (signal.aborted) return;
      this.#transport.leave(error);
      this.options.onError?.(error);
      await rest(this.#transport.clock, backoff.next(), signal);
    }
  }

  async *#once(signal, backoff) {
    const { response, close } = await this.#transport.stream({ ...this.request(), signal });
    try {
      this.options.onOpen?.();
      for await (const frame of frames(response.body, this.#transport.clock, this.options.silenceMs)) {
        const value = json(frame);
        if (frame.event === 'error') throw new StreamBroken(`${value?.code}: ${value?.detail}`);
        backoff.reset();
        yield* this.taken(frame, value);
      }
    } finally {
      close();
    }
  }
}

/** Events with their ids. Bookmarks count for going on, and are delivered only on request. */
export class Feed extends Reopened {
  #lastId;

  constructor(transport, options = {}) {
    super(transport, options);
    this.#lastId = options.since ?? null;
  }

  /** The place of the last event that was delivered, to go on after it: `client.feed({since})`. */
  get lastId() {
    return this.#lastId;
  }

  request() {
    const { kinds, prefix } = this.options;
    return { path: '/v1/feed', query: { kinds: kinds?.join(','), prefix, since: this.#lastId } };
  }

  *taken(frame, value) {
    if (value === null || typeof value !== 'object') throw new BadAnswer('an event that is no object');
    // This is set before the event is yielded: if the iteration ends there, the reader has had the event.
    if (frame.id) this.#lastId = frame.id;
    if (frame.event !== 'bookmark' || this.options.bookmarks) yield value;
  }
}

/** The messages of a channel: at most once, and without those that are sent while it is reopened. */
export class Listener extends Reopened {
  request() {
    return { path: this.options.path };
  }

  *taken(frame, value) {
    if (frame.event === 'message') yield value;
  }
}
