// Two things that `fetch` cannot do under Node: trust a private CA, and show a certificate. It has only what this
// client needs.

/** This is less than the time after which a node closes idle connections. */
const IDLE_MS = 30_000;

/** A function like `fetch` that uses these certificates: `{ca, cert, key}`, each a text in PEM. */
export function fetchOverTls({ ca, cert, key }) {
  let agent;
  return async (url, { method = 'GET', headers, body, signal } = {}) => {
    const { Agent, request } = await import('node:https');
    const { Readable } = await import('node:stream');
    agent ??= new Agent({ ca, cert, key, keepAlive: true, timeout: IDLE_MS });
    return new Promise((resolve, reject) => {
      const sending = request(url, { method, headers: Object.fromEntries(headers ?? []), signal, agent });
      let secured = false;
      sending.on('socket', (socket) => {
        secured = sending.reusedSocket;
        socket.once('secureConnect', () => (secured = true));
      });
      sending.on('error', (error) => {
        // Before the handshake is over, no part of a request has left.
        if (!secured) error.syscall ??= 'connect';
        reject(signal?.aborted ? signal.reason : error);
      });
      sending.on('response', (incoming) => resolve(answer(incoming, Readable)));
      sending.end(body);
    });
  };
}

function answer(incoming, Readable) {
  // The body reports an error that comes later.
  incoming.on('error', () => {});
  const status = incoming.statusCode;
  const empty = status === 204 || status === 304;
  if (empty) incoming.resume();
  const headers = Object.entries(incoming.headers).map(([name, value]) => [name, String(value)]);
  return new Response(empty ? null : Readable.toWeb(incoming), { status, headers });
}
