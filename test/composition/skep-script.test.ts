import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { cleanEnv, removeFolder, temporaryFolder } from '../support/server.ts';

const checkout = join(import.meta.dirname, '../..');

test('the npm script skep resolves paths in the folder of the caller, and uses one data folder everywhere', async () => {
  const caller = await temporaryFolder();
  try {
    const env = cleanEnv({ XDG_DATA_HOME: join(caller, 'data') });
    const skep = (cwd: string, ...args: string[]): string =>
      execFileSync('npm', ['run', '-s', '--prefix', checkout, 'skep', '--', ...args], { cwd, env, encoding: 'utf8', stdio: 'pipe' });
    skep(join(checkout, 'docs'), 'keys', 'create', 'ann');
    expect(JSON.parse(skep(checkout, 'keys', 'list', '--json'))).toMatchObject({ items: [{ name: 'ann' }] });
    skep(caller, 'backup', 'a copy.db');
    expect(existsSync(join(caller, 'a copy.db'))).toBe(true);
  } finally {
    await removeFolder(caller);
  }
});
