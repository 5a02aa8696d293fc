import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { afterAll, afterEach, expect, test, vi } from 'vitest';
import type { SandboxSpec } from '../../../../src/domain/sandbox-spec.ts';
import { startRegistry, type Registry, type RegistryOptions } from '../../../doubles/registry/server.ts';
import { describeWithDocker } from '../../../support/docker.ts';
import { until } from '../../../support/until.ts';
import { createEngine } from './engine.ts';
import { launchOf } from './programs.ts';

const never = new AbortController().signal;
const auth = (user: string, password: string): { auth: string } => ({ auth: Buffer.from(`${user}:${password}`).toString('base64') });

const specOf = ({ image }: Registry, changed = image): SandboxSpec => launchOf(null, { image: changed }).spec;

describeWithDocker('the images of sandboxes on docker', () => {
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
  test('are pulled once for all who want one, with their progress, and not again', async () => {
    const source = await registry();
    const spec = specOf(source);
    const runtime = engine.open();
    const lines: string[][] = [[], []];
    const both = await Promise.all(lines.map((told) => runtime.provide(spec, (line) => told.push(line), never)));
    expect(both).toEqual([{ kind: 'provided' }, { kind: 'provided' }]);
    for (const told of lines) {
      expect(told[0]).toBe(`pulling ${source.image}`);
      expect(told).toContainEqual(expect.stringContaining(`pulling ${source.image}: 1 of 1 layers`));
    }
    expect(source.requests.filter((request) => request.startsWith('GET') && request.includes('blobs')).length).toBe(2);
    const asked = source.requests.length;
    expect(await runtime.provide(spec, () => expect.fail('there is nothing to tell'), never)).toEqual({ kind: 'provided' });
    expect(source.requests.length).toBe(asked);
  });

  test("are pulled with the login of Docker's configuration, itself or a helper's", async () => {
    for (const kind of ['basic', 'bearer'] as const) {
      const source = await registry({ auth: kind });
      const dir = await configDir({ auths: { [source.host]: auth('ann', 'secret') } });
      expect(await engine.open({ configDir: dir }).provide(specOf(source), () => {}, never)).toEqual({ kind: 'provided' });
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
    expect(await engine.open({ configDir: dir }).provide(specOf(source), () => {}, never)).toEqual({ kind: 'provided' });
  });

  test('are refused with what to do where they can not be had', async () => {
    const source = await registry({ auth: 'bearer' });
    const none = await configDir({});
    const wrong = await configDir({ auths: { [source.host]: auth('ann', 'guessed') } });
    const right = await configDir({ auths: { [source.host]: auth('ann', 'secret') } });
    const detailOf = async (dir: string, image = source.image): Promise<string> => {
      const answer = await engine.open({ configDir: dir }).provide(specOf(source, image), () => {}, never);
      if (answer.kind === 'provided') throw new Error(`${image} was provided`);
      expect(answer.detail).toContain(image);
      return answer.detail;
    };
    expect(await detailOf(none)).toContain(`docker login ${source.host}`);
    expect(await detailOf(wrong)).toMatch(/refuses the login/);
    expect(await detailOf(right, `${source.host}/team/app:2`)).toMatch(/has no image .*correct the spec/);
    const gone = await startRegistry();
    await gone.close();
    expect(await detailOf(none, gone.image)).toMatch(/could not be pulled from 127/);
    expect(await detailOf(none, '../No Such: name')).toMatch(/is no name of an image/);
  });

  test('are given up when nobody waits for them any more, and when they take too long', async () => {
    const source = await registry();
    source.stall();
    const reason = new Error('no longer wanted');
    const controller = new AbortController();
    const lines: string[] = [];
    const given = engine.open().provide(specOf(source), (line) => lines.push(line), controller.signal);
    given.catch(() => {});
    await until(() => source.requests, (requests) => requests.filter((request) => request.includes('blobs')).length >= 2);
    controller.abort(reason);
    await expect(given).rejects.toBe(reason);

    const slow = await engine.open({ pullTimeoutMs: 300 }).provide(specOf(source), () => {}, never);
    expect(slow).toMatchObject({ kind: 'refused', detail: expect.stringMatching(/was not pulled within/) });
  });
});
