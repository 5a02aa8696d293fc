import assert from 'node:assert/strict';
import { afterAll, expect, test } from 'vitest';
import { tarEntry } from '../../../../src/adapters/shared/packed-tar.ts';
import { isFailureOf } from '../../../../src/domain/failure.ts';
import { neverAborts } from '../../../../src/ports/abort-signals.ts';
import { tarOf } from '../../../contracts/sandbox-runtime-streams.ts';
import { describeWithDocker, images } from '../../../support/docker.ts';
import { shell } from '../../../support/sandbox-programs.ts';
import { requireNamesInBytes, requireNoWayThroughLinks } from '../names-in-bytes.ts';
import { createEngine } from './engine.ts';
import { launchOf } from './programs.ts';

describeWithDocker('An archive of a Docker container', () => {
  const engine = createEngine();
  afterAll(() => engine.close());

  test('has names that are not UTF-8, but no way through links', async () => {
    const runtime = engine.open();
    const launch = launchOf(shell('exec sleep 100000'), { image: images.tiny, ports: [] });
    await runtime.start(launch, () => {}, neverAborts);
    await requireNamesInBytes(runtime, launch.id);
    await requireNoWayThroughLinks(runtime, launch.id);
    // The archive has no entry for this directory, which keeps its mode.
    const below = ReadableStream.from(tarEntry({ name: Buffer.from('d\xE9ep/file', 'latin1'), type: 'file' }));
    await assert.rejects(runtime.putFiles(launch.id, '/workspace/\u00FCp', below, neverAborts), (error) => isFailureOf(error, 'invalid_request'));
  });
  test('may have many files in the deepest directory that is allowed', { timeout: 60_000 }, async () => {
    const runtime = engine.open();
    const launch = launchOf(shell('exec sleep 100000'), { image: images.tiny, ports: [] });
    await runtime.start(launch, () => {}, neverAborts);
    const files = Array.from({ length: 500 }, (_, at) => [{ name: `${'directory-name/'.repeat(254)}${at}` }, ''] as const);
    const begun = performance.now();
    await runtime.putFiles(launch.id, '/workspace', tarOf(files), neverAborts);
    expect(performance.now() - begun).toBeLessThan(15_000);
  });
});
