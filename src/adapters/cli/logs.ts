import type { Readable } from 'node:stream';
import type { Command } from 'commander';
import { addressOf } from '../../client/connection.ts';
import { connectionLost, isTemporary } from '../../client/failures.ts';
import { type Execution, type FollowOptions, isFailure, type OutputPart } from '../../client/index.ts';
import { toCount } from './arguments.ts';
import { clientOf, followOptions, notice, printBody, stoppable, urlHelp } from './console.ts';
import { discardBody, transfer } from './transfer.ts';

export function addLogs(program: Command): void {
  program.command('logs').description('show what the command of a sandbox wrote, or one of its executions')
    .argument('<sandbox>', 'the id of the sandbox, which may be paused')
    .argument('[execution]', 'the id of an execution')
    .option('-f, --follow', 'continue until the sandbox stops, or the execution ends')
    .option('-n, --tail <lines>', 'begin with the last lines, at most this many', toCount)
    .option('--url <url>', urlHelp)
    .action((id: string, executionId: string | undefined, options: LogOptions) =>
      stoppable((signal) => showLogs(id, executionId, options, signal)));
}

interface LogOptions {
  readonly url?: string;
  readonly follow?: boolean;
  readonly tail?: number;
}

/**
 * Prints the log of a sandbox, or both outputs of an execution. On a terminal, removes control characters. Reconnects to an execution that
 * it follows. The log of a sandbox has no offset at which it could continue.
 */
async function showLogs(
  id: string, executionId: string | undefined, { follow = false, tail, ...options }: LogOptions, signal: AbortSignal,
): Promise<void> {
  const client = clientOf(options);
  const resource = `/api/v1/sandboxes/{id}${executionId === undefined ? '' : '/executions/{execution_id}'}`;
  const get = (part: string, query: object): Promise<Readable> =>
    transfer(client, { method: 'GET', path: addressOf(resource + part, { id, execution_id: executionId }, { ...query }), signal });
  const show = async (target: NodeJS.WriteStream, part: string, query: object, followFrom?: FollowFrom): Promise<void> => {
    let after: number | undefined;
    const open = async (follow: boolean): Promise<Readable> =>
      await get(part, { ...query, after, follow }).catch(async (error: unknown) => {
        if (!isFailure(error, 'output_dropped')) throw error;
        // Begins with the oldest byte that is kept.
        after = error.context.oldest;
        return await get(part, { ...query, after, follow });
      });
    const read = async <T>(follow: boolean, use: (log: Readable) => Promise<T>): Promise<T> =>
      await use(await open(follow)).catch(async (cause: unknown) => {
        // Throws the reason if the key is revoked, or the sandbox or the execution is deleted.
        await discardBody(get('', {})).catch((error: unknown) => {
          if (!isTemporary(error)) throw error;
        });
        throw connectionLost('The connection was lost before the end of the log. Run the command again.', cause);
      });
    // The API counts bytes, so the log is read once more to count lines.
    const start = tail === undefined ? 0 : await read(false, (log) => startOfLines(log, tail));
    if (followFrom === undefined) await read(follow, (log) => printBody(partFrom(log, start), target));
    else await printBody(followFrom((after ?? 0) + start), target);
  };
  if (executionId === undefined) {
    await show(process.stdout, '/logs', {});
    return;
  }
  const execution = follow ? await (await client.sandboxes.get(id)).executions.get(executionId) : null;
  await Promise.all((['stdout', 'stderr'] as const).map(async (stream) => {
    // Both outputs lose the connection together, so only one of them reports it.
    const options = followOptions(signal, stream === 'stdout' ? notice : () => {});
    const followFrom = execution === null ? undefined : (after: number) => followOutput(execution, stream, options, after);
    await show(process[stream], '/output', { stream }, followFrom);
  }));
}

type FollowFrom = (after: number) => AsyncGenerator<Uint8Array, void>;

/** Yields an output until the execution ends. Says which bytes are left out because they are no longer kept. */
async function* followOutput(
  execution: Execution, stream: OutputPart['stream'], options: FollowOptions, from: number,
): AsyncGenerator<Uint8Array, void> {
  for (let after = from; ;) {
    try {
      yield* execution.output(stream, { ...options, after });
      return;
    } catch (error) {
      if (!isFailure(error, 'output_dropped')) throw error;
      after = error.context.oldest;
      notice(`The output before byte ${after} is no longer kept.`);
    }
  }
}

/** Returns how many bytes come before the last lines of the log. */
async function startOfLines(log: AsyncIterable<Uint8Array>, lines: number): Promise<number> {
  let starts = [0];
  let size = 0;
  for await (const bytes of log) {
    for (let at = bytes.indexOf(lineFeed); at !== -1; at = bytes.indexOf(lineFeed, at + 1)) starts.push(size + at + 1);
    starts = starts.slice(-lines - 1);
    size += bytes.length;
  }
  // The last line may be unfinished. After a line feed, no line has begun yet.
  return [...starts, ...(starts.at(-1) === size ? [] : [size])].at(-lines - 1) ?? 0;
}

const lineFeed = 10;

async function* partFrom(log: AsyncIterable<Uint8Array>, start: number): AsyncGenerator<Uint8Array, void> {
  let before = start;
  for await (const bytes of log) {
    const rest = bytes.subarray(before);
    before = Math.max(0, before - bytes.length);
    if (rest.length > 0) yield rest;
  }
}
