import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { afterAll, afterEach, expect, test, vi } from 'vitest';
import type { Reason } from '../../../../src/domain/reason.ts';
import type { SandboxSpec } from '../../../../src/domain/sandbox-spec.ts';
import { neverAborts } from '../../../../src/ports/abort-signals.ts';
import { startRegistry, type Registry, type RegistryOptions } from '../../../doubles/registry/server.ts';
import { describeWithDocker } from '../../../support/docker.ts';
import { until } from '../../../support/until.ts';
import { createEngine } from './engine.ts';
import { launchOf } from './programs.ts';

const auth = (user: string, password: string): { auth: string } => ({ auth: Buffer.from(`${user}:${password}`).toString('base64') });

const specOf = ({ image }: Registry, changed = image): SandboxSpec => launchOf(null, { image: changed }).spec;

describeWithDocker('The images of Docker sandboxes', () => {
  const engine = createEngine();
  const undo: (() => Promise<unknown>)[] = [];
  afterEach(async () => {
    vi.unstubAllEnvs();
    await engine.clear();
    for (const step of undo.splice(0).toReversed()) await step();
  });
  afterAll(() => engine.close());

  async function registry(options: RegistryOptions = {}): Promise<Registry> {
    const opened = await startRegistry(options);
    undo.push(
      () => opened.close(),
      () => engine.docker.getImage(opened.image).remove({ force: true }).catch(() => {}),
    );
    return opened;
  }
  async function configDir(config: unknown): Promise<string> {
    const folder = await mkdtemp(join(tmpdir(), 'skep-docker-config-'));
    undo.push(() => rm(folder, { recursive: true }));
    await writeFile(join(folder, 'config.json'), JSON.stringify(config));
    return folder;
  }
  test('are pulled once for concurrent callers, with progress, and not again', async () => {
    const source = await registry();
    const spec = specOf(source);
    const runtime = engine.open();
    const progress: Reason[][] = [[], []];
    const both = await Promise.all(progress.map((reasons) => runtime.provide(spec, (reason) => reasons.push(reason), neverAborts)));
    expect(both).toEqual([{ kind: 'provided' }, { kind: 'provided' }]);
    for (const reasons of progress) {
      expect(reasons[0]).toMatchObject({ code: 'pulling_image', image: source.image, layers: 0 });
      expect(reasons).toContainEqual(expect.objectContaining({ code: 'pulling_image', layers: 1, doneLayers: 1 }));
    }
    expect(source.requests.filter((request) => request.startsWith('GET') && request.includes('blobs')).length).toBe(2);
    const asked = source.requests.length;
    expect(await runtime.provide(spec, () => expect.fail('there is nothing to tell'), neverAborts)).toEqual({ kind: 'provided' });
    expect(source.requests.length).toBe(asked);
  });

  test("are pulled with the login from Docker's configuration or its credential helper", async () => {
    for (const kind of ['basic', 'bearer'] as const) {
      const source = await registry({ auth: kind });
      const dir = await configDir({ auths: { [source.host]: auth('ann', 'secret') } });
      expect(await engine.open({ configDir: dir }).provide(specOf(source), () => {}, neverAborts)).toEqual({ kind: 'provided' });
    }
    const source = await registry({ auth: 'basic' });
    const dir = await configDir({ credHelpers: { [source.host]: 'skep-test' } });
    const helper = join(dir, 'docker-credential-skep-test');
    await writeFile(
      helper,
      `#!/bin/sh\nread -r server\n[ "$1 $server" = "get ${source.host}" ] && echo '{"Username":"ann","Secret":"secret"}'\n`,
    );
    await chmod(helper, 0o755);
    vi.stubEnv('PATH', `${dir}${delimiter}${process.env['PATH']}`);
    expect(await engine.open({ configDir: dir }).provide(specOf(source), () => {}, neverAborts)).toEqual({ kind: 'provided' });
  });

  test("are refused with the reason if they can't be pulled", async () => {
    const source = await registry({ auth: 'bearer' });
    const none = await configDir({});
    const wrong = await configDir({ auths: { [source.host]: auth('ann', 'guessed') } });
    const right = await configDir({ auths: { [source.host]: auth('ann', 'secret') } });
    const reasonOf = async (dir: string, image = source.image): Promise<Reason> => {
      const answer = await engine.open({ configDir: dir }).provide(specOf(source, image), () => {}, neverAborts);
      if (answer.kind === 'provided') throw new Error(`${image} was provided`);
      expect(answer.reason).toMatchObject({ image });
      return answer.reason;
    };
    expect(await reasonOf(none)).toMatchObject({ code: 'image_login_required', registry: source.host });
    expect(await reasonOf(wrong)).toMatchObject({ code: 'image_login_refused' });
    expect(await reasonOf(right, `${source.host}/team/app:2`)).toMatchObject({ code: 'image_not_found' });
    const gone = await startRegistry();
    await gone.close();
    expect(await reasonOf(none, gone.image)).toMatchObject({ code: 'image_pull_failed', registry: expect.stringMatching(/^127/) });
    expect(await reasonOf(none, '../No Such: name')).toMatchObject({ code: 'image_name_invalid' });
  });

  test('are no longer pulled if the caller leaves or the time limit is reached', async () => {
    const source = await registry();
    source.stall();
    const reason = new Error('no longer wanted');
    const controller = new AbortController();
    const given = engine.open().provide(specOf(source), () => {}, controller.signal);
    given.catch(() => {});
    await until(() => source.requests, (requests) => requests.filter((request) => request.includes('blobs')).length >= 2);
    controller.abort(reason);
    await expect(given).rejects.toBe(reason);

    const slow = await engine.open({ pullTimeoutMs: 300 }).provide(specOf(source), () => {}, neverAborts);
    expect(slow).toMatchObject({ kind: 'refused', reason: { code: 'image_pull_timeout' } });
  });
});
