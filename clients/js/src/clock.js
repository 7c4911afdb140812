// Time for all of this library: spans on a clock that never goes back. Tests replace it.

/** If the wall clock has run ahead of the monotonic clock by more than this, the machine has slept. */
const SLEPT_MS = 1000;

/**
 * A monotonic clock that counts a machine's sleep too. `performance.now` stands still while some systems are suspended,
 * and a holder that wakes up must not believe in a lease that ran out meanwhile. The wall clock can only make time pass
 * faster here: if it is set forward, a holder stops believing early; if it is set back, nothing changes.
 */
export function monotonic(steady, wall) {
  let slept = 0;
  let lastSteady = steady();
  let lastWall = wall();
  return () => {
    const [nowSteady, nowWall] = [steady(), wall()];
    const ahead = nowWall - lastWall - (nowSteady - lastSteady);
    if (ahead > SLEPT_MS) slept += ahead;
    [lastSteady, lastWall] = [nowSteady, nowWall];
    return nowSteady + slept;
  };
}

/** The longest time that a timer can be set to; beyond it Node fires at once. */
const TIMER_MOST_MS = 2 ** 31 - 1;

export const systemClock = {
  now: monotonic(
    () => performance.now(),
    () => Date.now(),
  ),

  /** Calls `fn` after `ms`; returns a function that cancels it. With `background`, Node may end before that. */
  after(ms, fn, { background = false } = {}) {
    const timer = setTimeout(fn, Math.min(Math.max(ms, 0), TIMER_MOST_MS));
    if (background) timer.unref?.();
    return () => clearTimeout(timer);
  },
};

/** Rests for `ms`, or until `signal` aborts: then it returns early, and nothing is thrown. */
export function rest(clock, ms, signal, options) {
  return new Promise((resolve) => {
    if (signal?.aborted) return resolve();
    const done = () => {
      cancel();
      signal?.removeEventListener('abort', done);
      resolve();
    };
    const cancel = clock.after(ms, done, options);
    signal?.addEventListener('abort', done);
  });
}

/** Pauses between attempts: doubling from the least to the most, half of each random. */
export class Backoff {
  constructor(leastMs = 50, mostMs = 1000) {
    this.leastMs = leastMs;
    this.mostMs = mostMs;
    this.reset();
  }

  reset() {
    this.pauseMs = this.leastMs;
  }

  next() {
    const pause = this.pauseMs * (0.5 + Math.random() / 2);
    this.pauseMs = Math.min(this.pauseMs * 2, this.mostMs);
    return pause;
  }
}
