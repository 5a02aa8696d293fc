import assert from 'node:assert/strict';
import { tarEntries } from '../../../src/adapters/sandbox-runtime/tar.ts';
import { tarEnd, tarEntry, type TarHeader } from '../../../src/adapters/shared/packed-tar.ts';
import { isFailureOf } from '../../../src/domain/failure.ts';
import { neverAborts } from '../../../src/ports/abort-signals.ts';
import type { SandboxRuntime } from '../../../src/ports/sandbox-runtime.ts';

const bytes = (text: string): Buffer => Buffer.from(text, 'latin1');

function tarOf(headers: readonly TarHeader[]): ReadableStream<Uint8Array> {
  return ReadableStream.from((async function* () {
    for (const header of headers) yield* tarEntry(header);
    yield tarEnd;
  })());
}

/** Names with one character per byte, and what they are or lead to. */
async function namesIn(archive: ReadableStream<Uint8Array>): Promise<string[]> {
  const names: string[] = [];
  for await (const entry of tarEntries(archive, neverAborts)) {
    const end = entry.kind === 'symlink' ? ` -> ${entry.target}` : '';
    names.push(`${entry.parts.join('/')}${end}`);
    if (entry.kind === 'file') for await (const _ of entry.content);
  }
  return names.toSorted();
}

/** Uploads and downloads names and targets of links that are not UTF-8, and a name that has U+FFFD. */
export async function requireNamesInBytes(runtime: SandboxRuntime, id: string): Promise<void> {
  const deep = `d\xE9ep/${'l\xF6ng'.repeat(30)}`;
  const headers: TarHeader[] = [
    { name: bytes('d\xE9ep/'), type: 'directory' }, { name: bytes(`${deep}/`), type: 'directory' },
    { name: bytes(`${deep}/caf\xE9`), type: 'file' },
    { name: 'link', type: 'symlink', linkname: bytes('caf\xE9.txt') },
    { name: bytes('hard\xFF'), type: 'link', linkname: bytes(`${deep}/caf\xE9`) },
    { name: 'replaced \uFFFD', type: 'file' },
  ];
  // The second time, everything is there.
  for (const _ of [1, 2]) await runtime.putFiles(id, '/workspace/\u00FCp', tarOf(headers), neverAborts);
  const replaced = Buffer.from('\u00FCp/replaced \uFFFD').toString('latin1');
  const up = Buffer.from('\u00FCp').toString('latin1');
  assert.deepEqual(await namesIn(await runtime.getFiles(id, '/workspace/\u00FCp', neverAborts)), [
    up, `${up}/d\xE9ep`, `${up}/${deep}`, `${up}/${deep}/caf\xE9`, `${up}/hard\xFF`, `${up}/link -> caf\xE9.txt`, replaced,
  ].toSorted());
}

/** Names that are not UTF-8 obey the same rules: none leads through a link. */
export async function requireNoWayThroughLinks(runtime: SandboxRuntime, id: string): Promise<void> {
  await runtime.putFiles(id, '/workspace', tarOf([{ name: bytes('w\xE9g'), type: 'symlink', linkname: '/tmp' }]), neverAborts);
  const directory: TarHeader = { name: bytes('w\xE9g/'), type: 'directory' };
  for (const name of ['w\xE9g/a', 'w\xE9g/\xFF/a']) {
    for (const before of [[], [directory]]) {
      await assert.rejects(runtime.putFiles(id, '/workspace', tarOf([...before, { name: bytes(name), type: 'file' }]), neverAborts), (error) =>
        isFailureOf(error, 'invalid_request'), name);
    }
  }
}
