// Combinations of abort signals. `AbortSignal.any` would do, but some engines keep its parts for as long as the longest
// lives.

/** A signal that aborts with any of `signals`; `dispose` removes its listeners. */
export function linked(...signals) {
  const controller = new AbortController();
  const parts = signals.filter(Boolean);
  const dispose = () => parts.forEach((part) => part.removeEventListener('abort', listen));
  const listen = (event) => {
    dispose();
    controller.abort(event.target.reason);
  };
  for (const part of parts) {
    if (part.aborted) controller.abort(part.reason);
    else part.addEventListener('abort', listen);
  }
  return { controller, signal: controller.signal, dispose };
}

/** A signal that aborts `ms` after another one; `dispose` removes its listener and timer. */
export function lingering(clock, signal, ms) {
  const controller = new AbortController();
  let cancel = () => {};
  const begin = () => (cancel = clock.after(ms, () => controller.abort(signal.reason), { background: true }));
  // If `signal` has aborted already, the call must not begin.
  if (signal.aborted) controller.abort(signal.reason);
  else signal.addEventListener('abort', begin);
  const dispose = () => {
    signal.removeEventListener('abort', begin);
    cancel();
  };
  return { signal: controller.signal, dispose };
}

/** `Symbol.asyncDispose`, for `await using`; a symbol of the same meaning if the engine has none yet. */
export const asyncDispose = Symbol.asyncDispose ?? Symbol.for('Symbol.asyncDispose');

/**
 * 128 random bits, as text. `crypto.randomUUID` is missing on pages that came by plain HTTP; `getRandomValues` is not.
 */
export function randomId() {
  if (globalThis.crypto.randomUUID) return globalThis.crypto.randomUUID();
  const bytes = globalThis.crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('');
}
