import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { cleanEnv, removeFolder, runSkep, startServer, temporaryFolder, type Server } from '../../support/server.ts';

/** A Python with E2B's package: `python3 -m venv DIR && DIR/bin/pip install e2b==2.63.0`, then `DIR/bin/python`. */
const python = process.env['SKEP_E2B_PYTHON'];
if (python === undefined) console.warn("E2B's Python package is not tested: SKEP_E2B_PYTHON names no Python that has it");

describe.skipIf(python === undefined)("E2B's Python package", () => {
  let dataDir: string;
  let server: Server;

  beforeAll(async () => {
    dataDir = await temporaryFolder();
    const specs = [{ id: 'web', command: ['sleep', '100000'] }];
    server = await startServer({ dataDir, env: { SKEP_SANDBOX_RUNTIME: 'process' }, config: { specs } });
  });
  afterAll(async () => {
    await server.stop();
    await removeFolder(dataDir);
  });

  test('runs commands and transfers files, with its synchronous and its asynchronous client', async () => {
    const { stdout: key } = await runSkep(['keys', 'create', 'python', '--format', 'e2b'], { SKEP_DATA_DIR: dataDir });
    const url = `${server.url}/e2b`;
    const env = cleanEnv({ E2B_API_KEY: key.trim(), E2B_API_URL: url, E2B_SANDBOX_URL: url });
    const script = join(import.meta.dirname, 'python-client.py');
    await expect(promisify(execFile)(python ?? '', [script], { env, timeout: 60_000 })).resolves.toMatchObject({ stderr: '' });
  });
});
