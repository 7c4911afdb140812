// A separate process that stands for a role, until it is killed: `node holder.js ROLE`. It prints its token once a node
// serves the connection that the role is held by.

import { client } from './stage.js';

const store = client(0);
const tie = store.backend.tie.bind(store.backend);
store.backend.tie = async (role, wanted) => {
  const line = await tie(role, wanted);
  process.stdout.write(`${wanted.token}\n`);
  return line;
};
await store.election(process.argv[2], { ttlMs: 3_600_000 }).start();
