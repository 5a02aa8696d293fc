import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { effectiveSettings } from '../../src/composition/config/effective-settings.ts';
import { readConfig } from '../../src/composition/config/read-config.ts';
import { removeFolder, temporaryFolder } from '../support/server.ts';

test('effective settings have the format of the configuration, and include the limits of the file', async () => {
  const folder = await temporaryFolder();
  const file = join(folder, 'skep.json');
  writeFileSync(file, JSON.stringify({
    limits: { connections_per_sandbox: 7 }, events: { keep_for: '1h' }, quarantine: { keep_for: '20m' }, starts: { setup_timeout: '90s' },
  }));
  const env = { SKEP_CONFIG: file, SKEP_GIT_TIMEOUT: '2m', SKEP_AGENT_MEMORY: '512MiB' };
  const shown = Object.fromEntries(effectiveSettings(readConfig(env)).map(({ key, value }) => [key, value]));
  await removeFolder(folder);
  expect(shown).toMatchObject({
    limits: expect.stringContaining('connections_per_sandbox 7'),
    events: 'keep_for 1h',
    quarantine: 'keep_for 20m',
    starts: expect.stringContaining('setup_timeout 90s'),
    git_timeout: '2m',
    agent_memory: '512MiB',
    port: '3000',
  });
});

test('the limits contain a default, a missing limit and an unlimited one', async () => {
  const folder = await temporaryFolder();
  const file = join(folder, 'skep.json');
  const limitsOf = (limits: object): string | null | undefined => {
    writeFileSync(file, JSON.stringify({ limits }));
    return effectiveSettings(readConfig({ SKEP_CONFIG: file })).find(({ key }) => key === 'limits')?.value;
  };
  expect(limitsOf({ running: 7 })).toMatch(/running_per_owner -, running 7, .*conversations_per_owner -, .*executions_per_sandbox 100, /);
  expect(limitsOf({ executions_per_sandbox: 'unlimited' })).toContain('executions_per_sandbox -');
  await removeFolder(folder);
});
