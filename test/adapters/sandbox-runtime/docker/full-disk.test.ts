import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { afterAll, expect, test } from 'vitest';
import { neverAborts } from '../../../../src/ports/abort-signals.ts';
import { describeWithDocker, images } from '../../../support/docker.ts';
import { shell } from '../../../support/sandbox-programs.ts';
import { createEngine } from './engine.ts';
import { launchOf } from './programs.ts';

const run = promisify(execFile);

describeWithDocker('A command in a sandbox whose disk is full', () => {
  const engine = createEngine();
  afterAll(() => engine.close());

  test.each([['dash', images.debian], ['busybox', images.tiny]] as const)('runs, and is not durable for this reason: %s', async (_, image) => {
    const runtime = engine.open();
    const { id } = await runtime.start(launchOf(shell('exec sleep 100000'), { image }), () => {}, neverAborts);
    const { State } = await engine.container(id).inspect();
    await run('nsenter', ['-t', String(State.Pid), '-m', '--', 'mount', '-t', 'tmpfs', '-o', 'size=64k,mode=1777', 'tmpfs', '/tmp']);
    await engine.ask(id, 'dd if=/dev/zero of=/tmp/filling; :');
    const start = async (executionId: string, tty: { cols: number; rows: number } | null) =>
      await runtime.executions.start(id, { executionId, command: ['rm', '/tmp/filling'], stdin: tty !== null, tty }, neverAborts);
    expect(await start('exec-terminal', { cols: 80, rows: 24 })).toMatchObject({
      durable: false, reason: image === images.tiny ? { tools: ['script'] } : { code: 'disk_full' },
    });
    await runtime.executions.ended(id, 'exec-terminal', neverAborts);
    await engine.ask(id, 'dd if=/dev/zero of=/tmp/filling; :');
    expect(await start('exec-pipes', null)).toMatchObject({ durable: false, reason: { code: 'disk_full' } });
    expect(await runtime.executions.ended(id, 'exec-pipes', neverAborts)).toMatchObject({ exitCode: 0 });
    expect(await start('exec-later', null)).toMatchObject({ durable: true, reason: null });
    expect(await engine.ask(id, 'ls -A /tmp')).toBe('.skep-executions');
  });
});
