import { delimiter } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest';
import type { AnyFailure } from '../../../../src/domain/failure.ts';
import { sentenceOfFailure } from '../../../../src/adapters/shared/failure-sentences.ts';
import { neverAborts } from '../../../../src/ports/abort-signals.ts';
import { finish, readTar, tarOf } from '../../../contracts/sandbox-runtime-streams.ts';
import { describeWithDocker } from '../../../support/docker.ts';
import { shell } from '../../../support/sandbox-programs.ts';
import { until } from '../../../support/until.ts';
import { createEngine } from './engine.ts';
import { descendantsOf } from './processes.ts';
import { launchOf } from './programs.ts';
import { createSshd, whyNoSshd, type Sshd } from './sshd.ts';

const idle = shell('exec sleep 100000');
const patience = 180_000;
const absent = await whyNoSshd();
if (absent !== null) console.warn(`SKIPPED an engine of docker over ssh: ${absent}.`);

const sshProcesses = async (): Promise<readonly string[]> =>
  (await descendantsOf(process.pid)).map(({ commandLine }) => commandLine).filter((line) => line.includes('dial-stdio'));

describeWithDocker('A Docker engine', () => {
  describe.skipIf(absent !== null)('over SSH', () => {
    const engine = createEngine();
    let sshd: Sshd;
    let env: Readonly<Record<string, string>>;
    beforeAll(async () => {
      sshd = await createSshd();
      env = { DOCKER_HOST: `ssh://root@127.0.0.1:${sshd.port}` };
    }, patience);
    beforeEach(() => void vi.stubEnv('PATH', `${sshd.bin}${delimiter}${process.env['PATH']}`));
    afterEach(async () => {
      await engine.clear();
      vi.unstubAllEnvs();
    }, patience);
    afterAll(async () => {
      await engine.close();
      await sshd?.close();
    }, patience);

    test('supports files, commands, pauses and events, and leaves no ssh process behind', { timeout: patience }, async () => {
      const runtime = engine.open({ env });
      expect(await runtime.check()).toMatchObject({ ok: true });
      const woken = new Set<string>();
      runtime.subscribe((id) => woken.add(id));
      const [launch, crashes] = [launchOf(idle), launchOf(idle)];
      for (const one of [launch, crashes]) {
        expect(await runtime.start(one, () => {}, neverAborts)).toMatchObject({
          state: 'running',
          exposedUrls: [{ url: expect.stringMatching(/^http:\/\/127\.0\.0\.1:\d+$/) }],
        });
      }
      const { id } = launch;

      const bytes = Uint8Array.from({ length: 300_007 }, (_, index) => (index * 7919) % 256);
      await runtime.putFiles(id, '/workspace/given', tarOf([[{ name: 'deep/binary', mode: 0o640 }, bytes]]), neverAborts);
      const copying = await runtime.execute(id, { command: ['tee', 'copy'], workingDir: '/workspace/given' }, neverAborts);
      const copied = buffer(copying.stdout);
      const writer = copying.stdin.getWriter();
      await writer.write(bytes);
      await writer.close();
      expect(Buffer.from(bytes).equals(await copied)).toBe(true);
      expect(await copying.exited).toBe(0);
      const found = await readTar(await runtime.getFiles(id, '/workspace/given', neverAborts));
      for (const name of ['given/deep/binary', 'given/copy']) expect(found.get(name)?.content.equals(Buffer.from(bytes))).toBe(true);

      const held = await runtime.execute(id, { command: ['sleep', '100000'] }, neverAborts);
      expect(await runtime.freeze(id)).toMatchObject({ state: 'frozen' });
      expect(await runtime.resume(launch, neverAborts)).toMatchObject({ state: 'running' });
      const refused = expect(held.stdin.getWriter().write(new Uint8Array(2 ** 26))).rejects.toThrow();
      await held.kill();
      await refused;
      expect(await finish(await runtime.execute(id, { command: shell('echo out; echo err >&2; exit 7') }, neverAborts))).toEqual({
        out: 'out\n',
        err: 'err\n',
        code: 7,
      });
      expect(await runtime.stop(id)).toMatchObject({ state: 'stopped' });
      expect(await runtime.resume(launch, neverAborts)).toMatchObject({ state: 'running' });

      await engine.crash(crashes.id);
      await until(() => [...woken], (ids) => ids.includes(crashes.id));
      expect(await runtime.list()).toHaveLength(2);
      for (const one of [launch, crashes]) await runtime.remove(one.id);
      expect(await runtime.list()).toEqual([]);
      expect(await sshProcesses()).not.toEqual([]);
      await runtime.close();
      await until(sshProcesses, (left) => left.length === 0);
    });

    test('answers 20 calls at once', { timeout: patience }, async () => {
      const runtime = engine.open({ env });
      const launch = launchOf(idle);
      await runtime.start(launch, () => {}, neverAborts);
      const told = await Promise.all(Array.from({ length: 20 }, () => runtime.inspect(launch.id)));
      expect(new Set(told.map(({ state }) => state))).toEqual(new Set(['running']));
    });

    test('is reported as unavailable with the reason if SSH fails', { timeout: patience }, async () => {
      let runtime = engine.open({ env });
      const refused = async (why: RegExp): Promise<void> => {
        const { ok, detail } = await runtime.check();
        expect({ ok, detail }).toEqual({ ok: false, detail: expect.stringMatching(why) });
        expect(detail).not.toMatch(/\/tmp|root|127\.0\.0\.1|\d{5}|undefined/);
        const failure: unknown = await runtime.inspect('sb-some').catch((error: unknown) => error);
        expect(failure).toMatchObject({ code: 'runtime_unavailable' });
        expect(sentenceOfFailure(failure as AnyFailure)).toBe(detail);
      };
      await sshd.know(null);
      await refused(/not in ssh's known_hosts; compare it, and add it/i);
      await sshd.know('another');
      await refused(/is another than the one in ssh's known_hosts; find out why/);
      await sshd.know('its own');
      await sshd.admit(false);
      await refused(/refused ssh's keys; try it as the user that the server runs as/);
      await sshd.admit(true);
      await sshd.kill();
      await refused(/ssh is refused by its engine's host; start the SSH server there/i);
      await sshd.start();
      expect(await runtime.check()).toMatchObject({ ok: true });
      // Not over the connection that is there.
      runtime = engine.open({ env });
      vi.stubEnv('PATH', '/nothing/at/all');
      await refused(/this machine has no ssh command; install an OpenSSH client/i);
    });

    test('notifies listeners about changes during and after a lost connection', { timeout: patience }, async () => {
      const runtime = engine.open({ env });
      const woken = new Set<string>();
      runtime.subscribe((id) => woken.add(id));
      const [removed, untouched, later] = [launchOf(idle), launchOf(idle), launchOf(idle)];
      for (const launch of [removed, untouched, later]) await runtime.start(launch, () => {}, neverAborts);
      const execution = await runtime.execute(untouched.id, { command: shell('cat; exit 9') }, neverAborts);
      await sshd.kill();
      await expect(runtime.inspect(removed.id)).rejects.toMatchObject({ code: 'runtime_unavailable' });
      await engine.container(removed.id).remove({ force: true });
      await sshd.start();
      await until(() => [...woken], (ids) => ids.includes(removed.id));
      // Its input ended with the connection; how it ended is known if somebody can be asked again by then.
      expect([9, null]).toContain(await execution.exited);
      await engine.crash(later.id);
      await until(() => [...woken], (ids) => ids.includes(later.id));
      expect((await runtime.inspect(later.id)).state).toBe('stopped');
      expect(woken.has(untouched.id)).toBe(false);
    });
  });
});
