// A real cluster, named by ELDEST_NODES: URLs of its nodes with commas between them.

import { once } from 'node:events';
import { connect, createServer } from 'node:net';
import { Client } from '../../src/index.js';

const NODES = (process.env.ELDEST_NODES ?? '').split(',').filter(Boolean);
if (NODES.length === 0) throw new Error('ELDEST_NODES names no nodes; use ./run-tests --unit for the tests that need none');

export const nodes = NODES;

/** A name that no other test and no other run has. */
export const unique = (name) => `js/${name}/${globalThis.crypto.randomUUID()}`;

/** A client whose list of nodes begins with the one of this number. */
export function client(first = 0, options = {}) {
  const at = first % NODES.length;
  return new Client([...NODES.slice(at), ...NODES.slice(0, at)], { token: process.env.ELDEST_TOKEN, ...options });
}

/** A way to a node that a test can cut: at once, or after the next answer has begun, which then never arrives. */
export class Way {
  #sockets = new Set();
  #server;
  swallow = false;

  static async to(url, t) {
    const way = new Way();
    const { hostname, port } = new URL(url);
    way.#server = createServer((near) => way.#join(near, connect(Number(port), hostname)));
    way.#server.listen(0, '127.0.0.1');
    await once(way.#server, 'listening');
    way.url = `http://127.0.0.1:${way.#server.address().port}`;
    t.after(() => way.close());
    return way;
  }

  #join(near, far) {
    for (const socket of [near, far]) {
      this.#sockets.add(socket);
      socket.on('error', () => {});
      socket.on('close', () => {
        this.#sockets.delete(socket);
        near.destroy();
        far.destroy();
      });
    }
    near.pipe(far);
    far.on('data', (piece) => {
      if (this.swallow) near.destroy();
      else near.write(piece);
    });
  }

  get connections() {
    return this.#sockets.size;
  }

  close() {
    this.#server.close();
    for (const socket of this.#sockets) socket.destroy();
  }
}
