import assert from 'node:assert/strict';
import { buffer, text } from 'node:stream/consumers';
import { neverAborts } from '../../src/ports/abort-signals.ts';
import { assertFailure } from './contract.ts';
import { beating } from './sandbox-runtime-beats.ts';
import { freeze, type StageCase } from './sandbox-runtime-harness.ts';
import { finish } from './sandbox-runtime-streams.ts';

const floodBytes = 64 * 2 ** 20;

export const executeCases: readonly StageCase[] = [
  [
    'runs a command, and returns its stdout, stderr and exit code',
    async ({ runtime, begun, commands }) => {
      const sandbox = await begun('counts');
      const execution = await runtime.execute(sandbox.id, { command: commands.speaks }, neverAborts);
      assert.deepEqual(await finish(execution), { out: 'out\n', err: 'err\n', code: 7 });
      await execution.kill();
      assert.equal(await execution.exited, 7);
    },
    'can share',
  ],
  [
    'passes binary input unchanged, and its end',
    async ({ runtime, begun, commands }) => {
      const sandbox = await begun('counts');
      const bytes = Uint8Array.from({ length: 1_000_003 }, (_, index) => (index * 7919) % 256);
      const { stdin, stdout, exited } = await runtime.execute(sandbox.id, { command: commands.copies }, neverAborts);
      const copied = buffer(stdout);
      const writer = stdin.getWriter();
      for (let at = 0; at < bytes.length; at += 70_001) await writer.write(bytes.subarray(at, at + 70_001));
      await writer.close();
      assert.ok(Buffer.from(bytes).equals(await copied), 'the output differs from the input');
      assert.equal(await exited, 0);
    },
    'can share',
  ],
  [
    'keeps stdout and stderr separate and in order, also for a reader that begins after the end',
    async ({ runtime, begun, commands, countsOn }) => {
      const sandbox = await begun('counts');
      const someTime = async (): Promise<void> => {
        for (let times = 0; times < 10; times += 1) await countsOn(sandbox.id);
      };
      const numbers = Array.from({ length: 500 }, (_, index) => index);
      for (const reader of ['quick', 'late']) {
        const execution = await runtime.execute(sandbox.id, { command: commands.alternates }, neverAborts);
        // The command may also wait for its reader.
        if (reader === 'late') await Promise.race([execution.exited, someTime()]).then(someTime);
        assert.deepEqual(await finish(execution), {
          out: numbers.map((number) => `out ${number}\n`).join(''),
          err: numbers.map((number) => `err ${number}\n`).join(''),
          code: 0,
        }, `for a ${reader} reader`);
      }
    },
    'can share',
  ],
  [
    "runs a command with the sandbox's and the request's variables in the requested directory",
    async ({ runtime, begun, commands, readFile }) => {
      const { id, spec } = await begun('counts');
      const env = { EXTRA: 'two words = "one"' };
      const said = { out: `hello there\n${env.EXTRA}\n`, err: '', code: 0 };
      assert.deepEqual(await finish(await runtime.execute(id, { command: commands.tells, env }, neverAborts)), said);
      assert.equal(await readFile(id, 'where'), 'here\n');
      await runtime.putFiles(id, `${spec.workingDir}/below`, new Blob([]).stream(), neverAborts);
      const workingDir = `${spec.workingDir}/below`;
      assert.deepEqual(await finish(await runtime.execute(id, { command: commands.tells, env, workingDir }, neverAborts)), said);
      assert.equal(await readFile(id, 'below/where'), 'here\n');
    },
    'can share',
  ],
  [
    'passes no secret of the sandbox to a command, also if another runtime object started the sandbox',
    async ({ runtime, open, start, launch, commands }) => {
      const plain = launch('counts');
      const secret = { EXTRA: 'a secret' };
      const { id } = plain;
      await start({ ...plain, spec: { ...plain.spec, secrets: Object.keys(secret) }, secrets: secret });
      for (const one of [runtime, await open()]) {
        for (const [env, said] of [[{}, ''], [{ EXTRA: 'its own' }, 'its own']] as const) {
          const execution = await one.execute(id, { command: commands.tells, env }, neverAborts);
          assert.deepEqual(await finish(execution), { out: `hello there\n${said}\n`, err: '', code: 0 });
        }
      }
    },
  ],
  [
    "returns the command's actual working directory if it differs from the requested path",
    async ({ runtime, begun, commands }) => {
      const { id, spec } = await begun('counts');
      await runtime.putFiles(id, `${spec.workingDir}/below/there`, new Blob([]).stream(), neverAborts);
      for (const asked of [undefined, spec.workingDir, `${spec.workingDir}/below/there`]) {
        const request = { command: commands.locates, ...(asked !== undefined && { workingDir: asked }) };
        const execution = await runtime.execute(id, request, neverAborts);
        assert.deepEqual(await finish(execution), { out: `${execution.workingDir ?? asked ?? spec.workingDir}\n`, err: '', code: 0 });
      }
    },
    'can share',
  ],
  [
    "writes to stderr why a command can't be run",
    async ({ runtime, begun, commands }) => {
      const { id } = await begun('counts');
      const requests = [
        [{ command: commands.missing }, /\S/],
        [{ command: [] }, /\S/],
        [{ command: [...commands.speaks, 'a\0b'] }, /\S/],
        [{ command: commands.speaks, workingDir: '/nowhere/at/all' }, /\/nowhere\/at\/all/],
      ] as const;
      for (const [request, why] of requests) {
        const { out, err, code } = await finish(await runtime.execute(id, request, neverAborts));
        const what = JSON.stringify(request);
        assert.ok(code === 126 || code === 127, `the exit code of ${what} is ${code}`);
        assert.match(err, why, `the standard error of ${what}`);
        assert.equal(out, '', `the standard output of ${what}`);
      }
      await assertFailure(runtime.execute(id, { command: commands.speaks, workingDir: 'relative' }, neverAborts), 'invalid_request');
    },
    'can share',
  ],
  [
    'returns an exit code of 128 plus the signal that ended the command',
    async ({ runtime, begun, commands }) => {
      const sandbox = await begun('counts');
      const { exited } = await runtime.execute(sandbox.id, { command: commands['ends itself'] }, neverAborts);
      assert.equal(await exited, 128 + 15, 'the exit code of a command that sent SIGTERM to itself');
    },
    'can share',
  ],
  [
    'blocks a command if nobody reads its output',
    async ({ runtime, begun, commands, readFile, countsOn }) => {
      const sandbox = await begun('counts');
      const { stdout, exited } = await runtime.execute(sandbox.id, { command: commands.floods }, neverAborts);
      for (let times = 0; times < 20; times += 1) await countsOn(sandbox.id);
      assert.equal(await readFile(sandbox.id, 'flooded'), null, 'the command does not wait for its reader');
      let bytes = 0;
      for await (const chunk of stdout) bytes += chunk.byteLength;
      assert.equal(bytes, floodBytes, 'the bytes of the output');
      assert.equal(await exited, 0);
      assert.equal(await readFile(sandbox.id, 'flooded'), 'over\n');
    },
    'can share',
  ],
  [
    'discards the rest of an output that is cancelled',
    async ({ runtime, begun, commands, readFile }) => {
      const sandbox = await begun('counts');
      const { stdout, exited } = await runtime.execute(sandbox.id, { command: commands.floods }, neverAborts);
      const reader = stdout.getReader();
      await reader.read();
      await reader.cancel();
      assert.equal(await exited, 0);
      assert.equal(await readFile(sandbox.id, 'flooded'), 'over\n');
    },
    'can share',
  ],
  [
    'blocks a writer if the command does not read its input',
    async (stage) => {
      const { execution } = await beating(stage);
      let taken = false;
      const writing = execution.stdin.getWriter().write(new Uint8Array(floodBytes)).then(() => (taken = true));
      const clock = await stage.begun('counts');
      for (let times = 0; times < 10; times += 1) await stage.countsOn(clock.id);
      assert.equal(taken, false, 'the writer does not wait for the command');
      const refused = assert.rejects(writing);
      await execution.kill();
      await refused;
    },
    'can share',
  ],
  [
    'fails with sandbox_not_running or sandbox_not_found if the sandbox does not run',
    async ({ runtime, traits, begun, launch, commands }) => {
      const request = { command: commands.speaks };
      await assertFailure(runtime.execute(launch('counts').id, request, neverAborts), 'sandbox_not_found');
      const { id } = await begun('counts');
      await freeze(runtime, id);
      if (traits.freeze) await assertFailure(runtime.execute(id, request, neverAborts), 'sandbox_not_running');
      await runtime.stop(id);
      await assertFailure(runtime.execute(id, request, neverAborts), 'sandbox_not_running');
    },
  ],
  [
    'runs 25 commands at once',
    async ({ runtime, begun, commands }) => {
      const sandbox = await begun('counts');
      const tell = async (number: number): Promise<string> => {
        const execution = await runtime.execute(sandbox.id, { command: commands.tells, env: { EXTRA: String(number) } }, neverAborts);
        return (await finish(execution)).out;
      };
      const told = await Promise.all(Array.from({ length: 25 }, (_, number) => tell(number)));
      assert.deepEqual(told, Array.from({ length: 25 }, (_, number) => `hello there\n${number}\n`));
    },
    'can share',
  ],
  [
    'runs a command in a sandbox that an earlier runtime started',
    async ({ runtime, open, begun, commands }) => {
      const sandbox = await begun('counts');
      await runtime.close();
      const request = { command: commands.tells, env: { EXTRA: 'again' } };
      const { stdout } = await (await open()).execute(sandbox.id, request, neverAborts);
      assert.equal(await text(stdout), 'hello there\nagain\n');
    },
    'can share',
  ],
];
