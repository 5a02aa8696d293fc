import assert from 'node:assert/strict';
import { afterAll, afterEach, expect, test } from 'vitest';
import { neverAborts } from '../../../../src/ports/abort-signals.ts';
import { describeWithDocker, images } from '../../../support/docker.ts';
import { shell } from '../../../support/sandbox-programs.ts';
import { createEngine } from './engine.ts';
import { launchOf } from './programs.ts';

describeWithDocker('Terminals in Docker containers', () => {
  const engine = createEngine();
  afterEach(() => engine.clear());
  afterAll(() => engine.close());

  /** Returns what a bash in a terminal writes if this line is typed. */
  async function typed(line: string, env: Readonly<Record<string, string>> = {}): Promise<string> {
    const runtime = engine.open();
    const { executions } = runtime;
    const launch = launchOf(shell('exec sleep 100000'), { ports: [], image: images.debian });
    const { state } = await runtime.start(launch, () => {}, neverAborts);
    assert.equal(state, 'running');
    const start = { executionId: 'exec-1', command: ['bash'], stdin: true, tty: { cols: 200, rows: 24 }, env };
    await executions.start(launch.id, start, neverAborts);
    const output = await executions.output(launch.id, 'exec-1', { stream: 'stdout', after: 0, follow: true }, neverAborts);
    const decoder = new TextDecoder();
    let shown = '';
    for await (const part of output) {
      // The first output is the prompt.
      if (shown === '') await executions.write(launch.id, 'exec-1', new Blob([`${line}\rexit\r`]).stream(), false, neverAborts);
      shown += decoder.decode(part, { stream: true });
    }
    return shown;
  }

  test('show typed characters that are not ASCII, although the image sets no locale', async () => {
    expect(await typed("printf '<%s>' grün日本")).toContain("printf '<%s>' grün日本\r\n");
  });

  test('keep the locale of the request', async () => {
    expect(await typed("printf '<%s>' $LC_CTYPE$LANG", { LC_CTYPE: 'POSIX' })).toContain('<POSIX>');
  });
});
