import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Backoff, monotonic } from '../src/clock.js';

function clocks() {
  const at = { steady: 100, wall: 5_000_000 };
  return { at, now: monotonic(() => at.steady, () => at.wall) };
}

test('time is the steady clock\'s', () => {
  const { at, now } = clocks();
  const before = now();
  at.steady += 250;
  at.wall += 251;
  assert.equal(now() - before, 250);
});

test('a sleep, in which the steady clock stood still, has passed', () => {
  const { at, now } = clocks();
  const before = now();
  at.wall += 3_600_000;
  assert.equal(now() - before, 3_600_000);
  at.steady += 10;
  at.wall += 10;
  assert.equal(now() - before, 3_600_010);
});

test('a wall clock that is set back changes nothing', () => {
  const { at, now } = clocks();
  const before = now();
  at.steady += 5;
  at.wall -= 1_000_000;
  assert.equal(now() - before, 5);
});

test('pauses double up to the most, and are drawn from the upper half', () => {
  const backoff = new Backoff(50, 1000);
  for (const pause of [50, 100, 200, 400, 800, 1000, 1000]) {
    const drawn = backoff.next();
    assert.ok(drawn >= pause / 2 && drawn <= pause, `${drawn} of ${pause}`);
  }
});
