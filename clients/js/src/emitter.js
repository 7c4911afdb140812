// Events: `on`, `once`, `off`, for Node and browsers alike.

/**
 * Listeners are called at once and in order. If one throws, the others and the emitter still go on: its error is
 * rethrown from the event loop, like any uncaught one. An `error` without a listener is not thrown: the loops of this
 * library go on by themselves after the errors that they report.
 */
export class Emitter {
  #listeners = new Map();

  on(event, listener) {
    if (typeof listener !== 'function') throw new TypeError('a listener is a function');
    const list = this.#listeners.get(event) ?? [];
    this.#listeners.set(event, [...list, { listener, called: listener }]);
    return this;
  }

  once(event, listener) {
    if (typeof listener !== 'function') throw new TypeError('a listener is a function');
    const called = (...values) => {
      this.off(event, called);
      return listener(...values);
    };
    const list = this.#listeners.get(event) ?? [];
    this.#listeners.set(event, [...list, { listener, called }]);
    return this;
  }

  off(event, listener) {
    const list = this.#listeners.get(event) ?? [];
    const at = list.findLastIndex((entry) => entry.listener === listener || entry.called === listener);
    if (at >= 0) this.#listeners.set(event, list.toSpliced(at, 1));
    return this;
  }

  emit(event, ...values) {
    const list = this.#listeners.get(event) ?? [];
    for (const { called } of list) {
      try {
        called.apply(this, values);
      } catch (error) {
        queueMicrotask(() => {
          throw error;
        });
      }
    }
    return list.length > 0;
  }
}
