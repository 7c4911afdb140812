import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Emitter } from '../src/emitter.js';

test('on, once and off', () => {
  const emitter = new Emitter();
  const heard = [];
  const twice = (value) => heard.push(['on', value]);
  emitter.on('e', twice).once('e', (value) => heard.push(['once', value]));
  assert.equal(emitter.emit('e', 1), true);
  emitter.off('e', twice);
  assert.equal(emitter.emit('e', 2), false);
  assert.deepEqual(heard, [['on', 1], ['once', 1]]);
});

test('off takes a listener of once', () => {
  const emitter = new Emitter();
  const never = () => assert.fail('called');
  emitter.once('e', never).off('e', never);
  emitter.emit('e');
});

test('an error without a listener is not thrown', () => {
  assert.equal(new Emitter().emit('error', new Error('x')), false);
});

test('a listener that throws keeps nobody from hearing, and its error is not lost', async () => {
  const emitter = new Emitter();
  const heard = [];
  const uncaught = new Promise((resolve) => {
    const listeners = process.rawListeners('uncaughtException');
    process.removeAllListeners('uncaughtException');
    process.once('uncaughtException', (error) => {
      listeners.forEach((listener) => process.on('uncaughtException', listener));
      resolve(error);
    });
  });
  emitter.on('e', () => {
    throw new Error('mine');
  });
  emitter.on('e', () => heard.push('second'));
  emitter.emit('e');
  assert.deepEqual(heard, ['second']);
  assert.equal((await uncaught).message, 'mine');
});
