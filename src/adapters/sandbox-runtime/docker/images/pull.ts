import type { Readable } from 'node:stream';
import { createInterface } from 'node:readline';
import type { Provision, Progress } from '../../../../ports/sandbox-runtime.ts';
import { Failure } from '../../../../domain/failure.ts';
import { raceSignal, realTimers, startTimeout } from '../../../shared/timeout.ts';
import type { Connection } from '../connect.ts';
import { streamed } from '../connection/streamed.ts';
import { messageOf, statusOf, whyUnreachable } from '../engine-errors.ts';
import { findLogin, type RegistryLogin } from './credentials.ts';
import { createPullProgress, PullMessage } from './pull-progress.ts';
import { registryName, registryOf } from './reference.ts';
import { shorten } from '../facts/words.ts';

export interface PullOptions {
  readonly connection: Connection;
  readonly configFolder: string;
  readonly limitMs: number;
  /** The least time between two lines of progress. */
  readonly progressMs: number;
}

/**
 * Lets the engine pull an image. Rejects with the signal's reason when that fires, and the engine stops then. Failures:
 * `runtime_unavailable`, where the engine is not there or goes away.
 */
export async function pullImage({ connection, configFolder, limitMs, progressMs }: PullOptions, image: string, progress: Progress, signal: AbortSignal): Promise<Provision> {
  const registry = registryOf(image);
  const tooLate = new Error('too late');
  const limit = startTimeout(realTimers, limitMs, () => tooLate, [signal, connection.closed]);
  let login: RegistryLogin = null;
  try {
    login = await raceSignal(findLogin(configFolder, registry), limit.signal);
    const answer = await connection.call(
      (abortSignal) => connection.docker.pull(image, { abortSignal, ...(login !== null && { authconfig: login }) }),
      { signal: limit.signal, limitMs },
    );
    const error = await follow(image, streamed(answer), progress, progressMs, limit.signal);
    return error === null ? { kind: 'provided' } : { kind: 'refused', detail: describe(image, error, registry, login) };
  } catch (error) {
    if (limit.signal.aborted && limit.signal.reason === tooLate) {
      return { kind: 'refused', detail: `the image ${image} was not pulled within ${Math.round(limitMs / 1000)} s; pull it ahead, or look at the way from the engine to ${registryName(registry)}` };
    }
    if (statusOf(error) === null) throw error;
    return { kind: 'refused', detail: describe(image, messageOf(error), registry, login) };
  } finally {
    limit.end();
  }
}

/** Reads what the engine says until it has said all. Answers with the error that it says. */
async function follow(image: string, answer: Readable, progress: Progress, progressMs: number, signal: AbortSignal): Promise<string | null> {
  const state = createPullProgress(image);
  let last = '';
  let lastAt = Number.NEGATIVE_INFINITY;
  const leave = (): void => void answer.destroy(signal.reason instanceof Error ? signal.reason : undefined);
  signal.addEventListener('abort', leave, { once: true });
  try {
    let failed: string | null = null;
    for await (const text of createInterface({ input: answer, crlfDelay: Number.POSITIVE_INFINITY })) {
      const message = parse(text);
      failed ??= message.error ?? null;
      state.note(message);
      const line = state.line();
      if (line === last || performance.now() - lastAt < progressMs) continue;
      last = line;
      lastAt = performance.now();
      progress(line);
    }
    signal.throwIfAborted();
    // A line reader ends in silence where its input is cut.
    if (answer.errored !== null) throw answer.errored;
    if (!answer.readableEnded) throw new Error('the engine broke off');
    return failed;
  } catch (error) {
    signal.throwIfAborted();
    throw new Failure('runtime_unavailable', { runtime: 'docker', reason: whyUnreachable(error), retryAfterSeconds: 5 }, { cause: error });
  } finally {
    signal.removeEventListener('abort', leave);
    answer.destroy();
  }
}

function parse(text: string): PullMessage {
  try {
    return PullMessage.parse(JSON.parse(text));
  } catch {
    return {};
  }
}

/** Why it can't be had, and what to do. */
function describe(image: string, said: string, registry: string, login: RegistryLogin): string {
  const where = registryName(registry);
  if (/unauthorized|authentication required|access (?:to the resource )?is? ?denied|denied:|no basic auth|may require 'docker login'/i.test(said)) {
    return login === null
      ? `the image ${image} does not exist, or ${where} wants a login: correct the spec's image, or log in with docker login ${registry.startsWith('https://') ? '' : registry}`.trim()
      : `the image ${image} does not exist, or ${where} refuses the login of Docker's configuration: correct the spec's image, or log in again`;
  }
  if (/manifest unknown|not found|does not exist|no such image|invalid reference/i.test(said)) return `${where} has no image ${image}; correct the spec's image, or build or load it on the engine`;
  return `the image ${image} could not be pulled from ${where}; correct the spec's image, build or load it on the engine, or let the engine reach ${where}: ${shorten(said)}`;
}
