import assert from 'node:assert/strict';
import { buffer, text } from 'node:stream/consumers';
import { afterEach, beforeEach, describe, test } from 'vitest';
import { neverAborts } from '../../../../src/ports/abort-signals.ts';
import type { Execution, SandboxLaunch, SandboxRuntime } from '../../../../src/ports/sandbox-runtime.ts';
import { eventually } from '../../../contracts/sandbox-runtime-harness.ts';
import { finish } from '../../../contracts/sandbox-runtime-streams.ts';
import { createHost, heldState, isAlive, stateOf, type Host } from './host.ts';
import { launchOf, programs } from './programs.ts';
import { shell } from '../../../support/sandbox-programs.ts';

let host: Host;
let runtime: SandboxRuntime;
let launch: SandboxLaunch;

beforeEach(async () => {
  host = await createHost();
  runtime = host.open();
  launch = launchOf(programs.counts);
  await runtime.start(launch, () => {}, neverAborts);
});

afterEach(() => host.close());

const execute = (script: string, env?: Record<string, string>): Promise<Execution> =>
  runtime.execute(launch.id, { command: shell(script), ...(env !== undefined && { env }) }, neverAborts);

async function pidIn(file: string): Promise<number> {
  await eventually(`${file} is written`, async () => (await host.readFile(launch.id, file))?.endsWith('\n') === true);
  return Number(await host.readFile(launch.id, file));
}

describe.each(['proc', 'ps'] as const)('The environment of a command, with %s', (processTable) => {
  test('contains the variables of the sandbox and the request, and none of the server', async () => {
    process.env['SKEP_TEST_SECRET'] = 'the-secret-of-the-server';
    try {
      runtime = host.open({ processTable });
      const spec = { ...launch.spec, initialEnv: { GREETING: 'a b=c "d"', PATH: `/first:${process.env['PATH']}`, LINES: 'one\ntwo' } };
      launch = { ...launchOf(programs.counts), spec };
      await runtime.start(launch, () => {}, neverAborts);
      const sandboxes = JSON.parse(
        await text(
          (await runtime.execute(launch.id, { command: [process.execPath, '-p', 'JSON.stringify(process.env)'] }, neverAborts)).stdout,
        ),
      );
      const env = { OWN: 'x', GREETING: 'other', SKEP_SANDBOX_MARK: 'forged', SKEP_SANDBOX_ID: 'forged', SKEP_EXECUTION_MARK: 'forged' };
      const changed = JSON.parse(
        await text(
          (await runtime.execute(launch.id, { command: [process.execPath, '-p', 'JSON.stringify(process.env)'], env }, neverAborts)).stdout,
        ),
      );
      assert.equal(sandboxes.GREETING, 'a b=c "d"');
      assert.equal(sandboxes.LINES, 'one\ntwo');
      assert.equal(sandboxes.PATH, spec.initialEnv.PATH);
      assert.equal(sandboxes.SESSION_KEY, launch.sessionApiKey);
      assert.equal(sandboxes.SKEP_SANDBOX_ID, launch.id);
      for (const name of ['SKEP_TEST_SECRET', 'SKEP_LEADER_ENVIRONMENT']) assert.equal(name in sandboxes, false, name);
      assert.notEqual(changed.SKEP_EXECUTION_MARK, 'forged');
      assert.deepEqual(changed, { ...sandboxes, OWN: 'x', GREETING: 'other', SKEP_EXECUTION_MARK: changed.SKEP_EXECUTION_MARK });
    } finally {
      delete process.env['SKEP_TEST_SECRET'];
      // What was started with one table is not recognised by the other, which the host clears up with.
      await runtime.remove(launch.id);
    }
  });
});

describe('The streams of a command', () => {
  test('use constant memory for unread output and for 1 GiB of output', async () => {
    const held = await execute('exec dd if=/dev/zero bs=1M count=100000 2>/dev/null');
    const { stdout, exited } = await execute('exec dd if=/dev/zero bs=1M count=1024 2>/dev/null');
    const before = process.memoryUsage();
    let most = 0;
    let bytes = 0;
    for await (const chunk of stdout) {
      bytes += chunk.byteLength;
      const { arrayBuffers, external } = process.memoryUsage();
      most = Math.max(most, arrayBuffers + external - before.arrayBuffers - before.external);
    }
    assert.equal(bytes, 2 ** 30);
    assert.equal(await exited, 0);
    // Garbage included, of which there is a gigabyte in the end.
    assert.ok(most < 768 * 2 ** 20, String(most));
    await held.kill();
    assert.ok((await buffer(held.stdout)).length < 2 ** 20);
  });

  test('are separate for 100 commands at once', async () => {
    const said = await Promise.all(
      Array.from({ length: 100 }, async (_, number) => {
        const execution = await execute('read line; echo "$line" "$NUMBER"; echo error "$NUMBER" >&2; exit "$NUMBER"', {
          NUMBER: String(number),
        });
        const writer = execution.stdin.getWriter();
        await writer.write(new TextEncoder().encode(`line ${number}\n`));
        writer.releaseLock();
        return finish(execution);
      }),
    );
    for (const [number, { out, err, code }] of said.entries())
      assert.deepEqual({ out, err, code }, { out: `line ${number} ${number}\n`, err: `error ${number}\n`, code: number });
  });

  test('can be closed and written to after the command has ended', async () => {
    const { stdin, exited } = await execute('exit 0');
    assert.equal(await exited, 0);
    await stdin.close();
    const other = await execute('exec <&-; read wait < /dev/null; exit 0');
    await other.exited;
    await assert.rejects(other.stdin.getWriter().write(new Uint8Array(2 ** 22)));
  });
});

describe('A command in the process runtime', () => {
  test('reports its exit while a child holds its outputs, and a kill ends the child', async () => {
    const execution = await execute('setsid sh -c "echo \\$\\$ > left; exec sleep 1000" & exit 5');
    const left = await pidIn('left');
    assert.equal(await execution.exited, 5);
    assert.equal(await isAlive(left), true);
    await execution.kill();
    assert.equal(await isAlive(left), false);
    assert.equal(await text(execution.stdout), '');
  });

  test('is frozen, resumed and stopped by a second runtime object', async () => {
    const execution = await execute('echo $$ > pid; exec sleep 1000');
    const pid = await pidIn('pid');
    const other = host.open();
    await other.freeze(launch.id);
    assert.match((await stateOf(pid)) ?? '', heldState);
    await other.resume(launch, neverAborts);
    await eventually('the command continues', async () => (await stateOf(pid)) === 'S');
    await other.stop(launch.id);
    assert.ok(Number(await execution.exited) > 128);
  });

  test('does not run on if it starts during a freeze or a stop', async () => {
    const other = host.open();
    for (const move of ['freeze', 'stop', 'freeze', 'stop', 'freeze', 'stop'] as const) {
      await other.resume(launch, neverAborts);
      const begun = Array.from({ length: 5 }, () => execute('exec sleep 1000').then(({ exited }) => exited, () => null));
      await other[move](launch.id);
      const held = async (): Promise<boolean> => {
        const states = await Promise.all((await host.processes(launch.id)).map(stateOf));
        return states.length > 0 && states.every((state) => state === null || heldState.test(state));
      };
      const still = (): Promise<boolean> => (move === 'freeze' ? held() : host.processes(launch.id).then((pids) => pids.length === 0));
      await eventually(`no process runs after ${move}`, still);
      await other.stop(launch.id);
      await Promise.all(begun);
    }
  });
});
