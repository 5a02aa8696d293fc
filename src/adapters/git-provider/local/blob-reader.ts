import { runGit } from '../../shared/git-process.ts';
import { demandSuccess, failed, tooLarge } from './failures.ts';
import type { ResolvedOptions } from './local-git-provider.ts';
import { type ObjectReader, type ObjectsRequest, readObjects } from './private-git-folders.ts';

/** Reads the content with the id `oid`. Null if the repository has no such content. */
export async function readBlob(
  options: ResolvedOptions, request: ObjectsRequest, maxBytes: number, signal: AbortSignal,
): Promise<Buffer | null> {
  return await readObjects(options, request, signal, async (reader, either) => {
    // Git takes a large object into memory before it writes the first byte.
    const size = await sizeOf(reader, request.oid, either);
    if (size === null) return null;
    const limit = { bytes: maxBytes, failure: () => tooLarge(`${maxBytes} bytes in a file`) };
    if (size > maxBytes) throw limit.failure();
    const chunks: Buffer[] = [];
    const command = { ...reader.command, args: ['cat-file', 'blob', request.oid] };
    demandSuccess(await runGit(command, limit, either, (chunk) => chunks.push(chunk)));
    return Buffer.concat(chunks);
  });
}

/** In bytes. Null if there is no such object, or it is no file's content. */
async function sizeOf({ command, limit }: ObjectReader, oid: string, signal: AbortSignal): Promise<number | null> {
  let output = '';
  const check = { ...command, args: ['cat-file', '--batch-check'], input: `${oid}\n` };
  const exit = await runGit(check, limit, signal, (chunk) => {
    output += chunk.toString('latin1');
  });
  demandSuccess(exit);
  // Of an object that git can't read, it says that it is missing, and why.
  if (exit.stderr !== '') throw failed('objects of the repository are missing or corrupt', new Error(exit.stderr));
  const size = /^[0-9a-f]+ blob (\d+)\n$/u.exec(output)?.[1];
  return size === undefined ? null : Number(size);
}
