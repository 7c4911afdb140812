// Values that are read from answers, checked: no server can make a program act on `undefined`.

import { BadAnswer } from './errors.js';

export function object(value, what) {
  if (value === null || typeof value !== 'object' || Array.isArray(value)) throw new BadAnswer(`${what}: no object`);
  return value;
}

export function items(value, what) {
  if (!Array.isArray(object(value, what).items)) throw new BadAnswer(`${what}: no items`);
  return value;
}

/** A fencing token: an integer below 2^53, so that it is exact here too. */
export function token(value, what) {
  if (!Number.isSafeInteger(value) || value < 0) throw new BadAnswer(`${what}: ${value} is no token`);
  return value;
}

export function span(value, what) {
  if (typeof value !== 'number' || !Number.isFinite(value) || value < 0) throw new BadAnswer(`${what}: ${value} is no span`);
  return value;
}

/**
 * A value as JSON. `NaN`, and `Infinity`, which a number beyond all doubles becomes when it is read, would be written
 * as null: a program that reads a value and writes it again would change it.
 */
export const encoded = (value) =>
  JSON.stringify(value, (_, part) => {
    if (typeof part === 'number' && !Number.isFinite(part)) throw new TypeError(`${part} is no JSON`);
    return part;
  });

/** One segment of a path. URLs lose segments of one or two dots on the way, so no name can be one. */
export function segment(name, what) {
  const text = String(name ?? '');
  if (text === '' || text === '.' || text === '..') throw new TypeError(`${what}: "${text}" cannot stand in a URL`);
  return encodeURIComponent(text);
}
