import { buffer } from 'node:stream/consumers';
import { posix } from 'node:path';
import { Readable } from 'node:stream';
import { requireFile, requireReplaceable, rangeOf, wrongFileType } from '../../../src/adapters/sandbox-runtime/file-content.ts';
import { quotedName, refusedFiles, sandboxPath } from '../../../src/adapters/sandbox-runtime/sandbox-path.ts';
import { Failure } from '../../../src/domain/failure.ts';
import type { FileEntry } from '../../../src/domain/file-entry.ts';
import type { SandboxFiles } from '../../../src/ports/sandbox-files.ts';
import type { MemoryEngine } from './sandbox-engine.ts';
import type { MemoryFiles, MemoryNode } from './sandbox-files.ts';

const root: MemoryNode = { kind: 'directory', mode: 0o755, modifiedAt: new Date(0) };

/** The files of sandboxes in memory. */
export function memoryFiles(engine: MemoryEngine): SandboxFiles {
  const at = (id: string, path: string, followLink: boolean, isNamed: boolean, signal: AbortSignal) => {
    signal.throwIfAborted();
    const files = engine.files(id);
    const asked = sandboxPath(path, isNamed ? 'path' : 'directory');
    const real = files.realPath(asked, followLink);
    requireParents(files, real);
    return { files, asked, real, node: real === '/' ? root : files.node(real) };
  };
  const found = (place: ReturnType<typeof at>) => {
    if (place.node === undefined) throw new Failure('file_not_found', { path: place.asked });
    return entryOf(place.asked, place.node);
  };
  return {
    stat: async (id, path, followLink, signal) => found(at(id, path, followLink, false, signal)),
    async read(id, path, choose, signal) {
      const place = at(id, path, true, false, signal);
      const file = found(place);
      requireFile(file);
      const { node } = place;
      const bytes = node?.kind === 'file' ? [node.content] : [];
      const content = rangeOf(Readable.from(bytes), choose(file), file.size, () => {});
      return { file, content: content.pipeThrough(new TransformStream(), { signal }) };
    },
    async write(id, path, content, { mode, check }, signal) {
      try {
        const before = at(id, path, true, true, signal);
        if (before.node?.kind === 'directory') throw wrongFileType(path, 'directory');
        const requireExpected = ({ asked, node }: ReturnType<typeof at>) => check?.(node?.kind === 'file' ? entryOf(asked, node) : null);
        requireExpected(before);
        const ended = AbortSignal.any([signal, engine.removed(id)]);
        const bytes = await buffer(content.pipeThrough(new TransformStream(), { signal: ended }));
        const after = at(id, path, true, true, signal);
        requireExpected(after);
        const { files, asked, real, node } = after;
        files.put(real, { kind: 'file', mode: mode ?? (node?.kind === 'file' ? node.mode : 0o644), modifiedAt: new Date(), content: bytes });
        return entryOf(asked, files.node(real) ?? root);
      } finally {
        if (!content.locked) content.cancel().catch(() => {});
      }
    },
    async makeDirectory(id, path, signal) {
      const { files, real, node } = at(id, path, true, false, signal);
      if (node !== undefined && node.kind !== 'directory') throw wrongFileType(path, node.kind);
      files.makeDirectory(real);
      return node === undefined;
    },
    async remove(id, path, recursive, signal) {
      const place = at(id, path, false, true, signal);
      if (found(place).type === 'directory' && !recursive) throw wrongFileType(path, 'directory');
      place.files.delete(place.real);
    },
    async move(id, from, to, signal) {
      const source = at(id, from, false, true, signal);
      const { type } = found(source);
      const { files, real, node } = at(id, to, false, true, signal);
      if (node !== undefined) requireReplaceable(to, node.kind, type);
      for (const one of files.below(source.real)) {
        const moved = files.node(one);
        if (moved !== undefined) files.put(posix.join(real, posix.relative(source.real, one)), moved);
      }
      files.delete(source.real);
    },
    async *list(id, path, depth, signal) {
      const place = at(id, path, true, false, signal);
      if (found(place).type !== 'directory') throw wrongFileType(path, found(place).type);
      for (const one of place.files.below(place.real)) {
        const name = posix.relative(place.real, one);
        const node = place.files.node(one);
        if (name !== '' && name.split('/').length <= depth && node !== undefined) yield entryOf(posix.join(place.asked, name), node);
      }
    },
  };
}

function requireParents(files: MemoryFiles, path: string): void {
  for (let above = posix.dirname(path); above !== '/'; above = posix.dirname(above)) {
    const node = files.node(above);
    if (node !== undefined && node.kind !== 'directory') throw wrongFileType(above, node.kind);
  }
  if (posix.basename(path).length > 255) throw refusedFiles('path', `${quotedName(path)} is too long`);
}

function entryOf(path: string, node: MemoryNode): FileEntry {
  const { kind: type, mode, modifiedAt } = node;
  const size = node.kind === 'file' ? node.content.byteLength : 0;
  return { path, type, size, mode, modifiedAt: modifiedAt.getTime(), target: node.kind === 'symlink' ? node.target : null, owner: null };
}
