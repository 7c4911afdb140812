// The connection that a lease ends with. Under Node it is a separate connection that does not keep the process from
// ending: a program that has finished ends, as it did with a lease alone, and the role is free.

/** `{status, body, close}`, where the body is a web stream. Throws the connection's error. */
export async function openLine(fetch, ownFetch, url, { method, headers, signal, tls }) {
  if (!ownFetch && globalThis.process?.versions?.node) return overNode(url, { method, headers, signal, tls });
  const response = await fetch(url, { method, headers, signal, cache: 'no-store', redirect: 'manual' });
  return { status: response.status, body: response.body };
}

async function overNode(url, { method, headers, signal, tls }) {
  const { request } = url.startsWith('https:') ? await import('node:https') : await import('node:http');
  const { Readable } = await import('node:stream');
  return new Promise((resolve, reject) => {
    const sending = request(url, { method, headers: Object.fromEntries(headers), signal, agent: false, ...tls });
    sending.on('socket', (socket) => socket.unref());
    sending.on('error', reject);
    sending.on('response', (incoming) => {
      // The body reports an error that comes later.
      incoming.on('error', () => {});
      resolve({ status: incoming.statusCode, body: Readable.toWeb(incoming) });
    });
    sending.end();
  });
}
