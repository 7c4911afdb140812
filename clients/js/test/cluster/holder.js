// A process of its own that stands for a role, until it is killed: `node holder.js ROLE`.

import { client } from './stage.js';

const election = client(0).election(process.argv[2]);
election.on('leader_acquired', (token) => process.stdout.write(`${token}\n`));
await election.start();
