import type { IncomingMessage } from 'node:http';
import type { LogRequest } from '../../../ports/sandbox-runtime.ts';
import { streamOf } from '../../shared/node-streams.ts';
import { dial, type Engine, findContainer, streamed, unavailable, whyUnreachable } from './engine.ts';
import { createFrameReader } from './stream-frames.ts';

/** Reads the log of a sandbox's container. The engine keeps it in entries: each is a line, or a part of a long line. */
export async function readLog(
  engine: Engine, id: string, { tailBytes, follow = false }: LogRequest, signal: AbortSignal,
): Promise<ReadableStream<Uint8Array>> {
  const { Id } = await findContainer(engine, id, signal);
  const ends = AbortSignal.any([signal, engine.closed]);
  const { entries, skipBytes } = tailBytes === undefined ? wholeLog : await findTail(engine, Id, tailBytes, ends);
  const response = await openLog(engine, Id, entries, follow, ends);
  return streamOf(ends, (ended) => contentOf(streamed(response, ended), skipBytes, ended));
}

/** How many of the newest entries to read, and how many bytes of the first one to skip. */
interface LogStart {
  readonly entries: number | 'all';
  readonly skipBytes: number;
}

const wholeLog: LogStart = { entries: 'all', skipBytes: 0 };

/**
 * Finds the start of the last `bytes` of a log, which the engine can only read by entries. Entries that are added before the log is read
 * move the start forward, but leave no gap.
 */
async function findTail(engine: Engine, containerId: string, bytes: number, signal: AbortSignal): Promise<LogStart> {
  const sizes: number[] = [];
  let size = 0;
  const read = createFrameReader((_, { length }, toCome) => {
    size += length;
    if (toCome > 0) return;
    sizes.push(size);
    size = 0;
  });
  // No entry is empty, so `bytes` entries are enough.
  if (bytes > 0) {
    const newest = streamed(await openLog(engine, containerId, bytes, false, signal), signal);
    for await (const chunk of chunksOf(newest, signal)) read(chunk);
  }
  let entries = 0;
  let found = 0;
  for (const entrySize of sizes.toReversed()) {
    if (found >= bytes) break;
    found += entrySize;
    entries += 1;
  }
  // If the log is shorter, read all of it, also later entries.
  return found < bytes ? wholeLog : { entries, skipBytes: found - bytes };
}

/** Dockerode's own `logs` reads the whole log into memory unless `follow` is set. */
async function openLog(
  { docker, call }: Engine, containerId: string, entries: number | 'all', follow: boolean, signal: AbortSignal,
): Promise<unknown> {
  const request = (abortSignal: AbortSignal) => ({
    path: `/containers/${containerId}/logs?`,
    method: 'GET',
    isStream: true,
    statusCodes: { 200: true, 404: 'no such container', 500: 'server error' },
    options: { stdout: true, stderr: true, follow, tail: String(entries) },
    abortSignal,
  });
  return await call((abortSignal) => dial(docker, request(abortSignal)), { signal });
}

/** Yields the content of the entries, without the first bytes of the first entry. */
async function* contentOf(response: IncomingMessage, skipBytes: number, signal: AbortSignal): AsyncGenerator<Uint8Array, void> {
  let toSkip = skipBytes;
  const pieces: Buffer[] = [];
  const read = createFrameReader((_, piece, toCome) => {
    const cut = Math.min(toSkip, piece.length);
    toSkip = toCome === 0 ? 0 : toSkip - cut;
    if (cut < piece.length) pieces.push(piece.subarray(cut));
  });
  for await (const chunk of chunksOf(response, signal)) {
    read(chunk);
    yield* pieces.splice(0);
  }
}

/** Yields the bytes of a response. Throws the signal's reason, or `runtime_unavailable` if the connection breaks. */
async function* chunksOf(response: IncomingMessage, signal: AbortSignal): AsyncGenerator<Buffer, void> {
  try {
    for await (const chunk of response) if (chunk instanceof Buffer) yield chunk;
  } catch (error) {
    signal.throwIfAborted();
    throw unavailable(whyUnreachable(error), error);
  }
}
