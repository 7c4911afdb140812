import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { test } from 'node:test';
import { nodes } from './stage.js';

const root = fileURLToPath(new URL('../../', import.meta.url));

test('what the README begins with runs as it stands', async () => {
  const readme = await readFile(`${root}README.md`, 'utf8');
  const [, code] = readme.match(/```js\n([^]*?)```/);
  const here = code.replace(/\[('http:.*')\]/, JSON.stringify(nodes));
  assert.notEqual(here, code);
  const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '-e', here], { cwd: root });
  assert.match(stdout, /^this process cleans up, with token \d+\n$/);
});
