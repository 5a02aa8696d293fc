import { useCallback, useEffect, useRef, useState } from 'preact/hooks';
import { latestEventId } from '../client/event-stream.ts';
import { isTemporary } from '../client/failures.ts';
import { type api, isFailure, type SkepError } from '../client/index.ts';
import { sleep } from '../client/waiting.ts';
import { currentSession, isOnline } from './session.ts';

interface ResourceState<T> {
  /** The last loaded data. It is kept during a reload, unless the resource no longer exists. */
  readonly data: T | null;
  readonly error: Error | null;
}

export interface Resource<T> extends ResourceState<T> {
  readonly reload: () => void;
  /** Shows this data without loading it, after an action whose result it is. */
  replace(data: T): void;
}

/** Events arrive in batches, so that many cause only one reload. */
const batchMs = 250;

type Load<T> = (signal: AbortSignal) => Promise<T>;

/** Loads a resource. Reloads it when `deps` change, when an event concerns it, and when the server is reachable again. */
export function useResource<T>(load: Load<T>, deps: readonly unknown[], isRelevant?: (event: api.Event) => boolean): Resource<T> {
  const [state, setState] = useState<ResourceState<T>>({ data: null, error: null });
  const [round, setRound] = useState(0);
  const loading = useRef<AbortController | null>(null);
  const isDue = useRef(false);
  // A load under way ends first. If each event aborted it, events that come faster than loads end would leave the page as it was.
  const reload = useCallback(() => {
    isDue.current = loading.current !== null;
    if (!isDue.current) setRound((last) => last + 1);
  }, []);
  useEffect(() => {
    // Otherwise a failure of the earlier `deps` would look like one of the load that begins now.
    setState((last) => (last.error === null ? last : { ...last, error: null }));
  }, deps);
  useEffect(() => {
    const abort = (loading.current = new AbortController());
    isDue.current = false;
    const end = (next: (last: ResourceState<T>) => ResourceState<T>) => {
      if (abort.signal.aborted) return;
      loading.current = null;
      setState(next);
      if (isDue.current) reload();
    };
    load(abort.signal).then(
      (data) => end(() => ({ data, error: null })),
      (error: unknown) => end(({ data }) => ({ data: isGone(error) ? null : data, error: asError(error) })),
    );
    return () => abort.abort();
  }, [...deps, round]);
  useEffect(() => {
    if (isRelevant === undefined) return;
    const listener: Listener = (events) => (events === null || events.some(isRelevant)) && reload();
    listeners.add(listener);
    return () => void listeners.delete(listener);
  }, deps);
  const wasOnline = useRef(true);
  useEffect(() => {
    if (isOnline.value && !wasOnline.current) reload();
    wasOnline.current = isOnline.value;
  }, [isOnline.value]);
  const replace = (data: T) => {
    // A load under way may have read what was there before.
    loading.current?.abort();
    loading.current = null;
    setState({ data, error: null });
  };
  return { ...state, reload, replace };
}

export function isGone(error: unknown): boolean {
  return isRefusal(error) && error.status === 404;
}

/** Whether Skep itself refuses, and will do so again. A proxy in front of it can answer with any status while the server is not there. */
function isRefusal(error: unknown): error is SkepError {
  return isFailure(error) && error.code !== 'unexpected_answer' && refusals.has(error.status);
}

const refusals: ReadonlySet<number | null> = new Set([401, 403, 404]);

export function asError(error: unknown): Error {
  return error instanceof Error ? error : new Error(String(error));
}

/** Gets the new events; null: there may have been any. */
type Listener = (events: readonly api.Event[] | null) => void;

const listeners = new Set<Listener>();

function notify(events: readonly api.Event[] | null): void {
  for (const listener of listeners) {
    try {
      listener(events);
    } catch (error) {
      // The other listeners and the next events must not suffer from it.
      reportError(error);
    }
  }
}

function beginAfter(latest: number): number {
  // What the page has loaded can be older than this event.
  notify(null);
  return latest;
}

/** Reloads what changes in everything that the key can see, while the page is visible. Returns a function that stops this. */
export function followChanges(onFailure: OnFailure): () => void {
  let waiting: api.Event[] = [];
  let timer: number | null = null;
  const stop = followEvents(undefined, beginAfter, (event) => {
    waiting.push(event);
    timer ??= setTimeout(() => {
      notify(waiting);
      [waiting, timer] = [[], null];
    }, batchMs);
  }, onFailure);
  return () => {
    stop();
    if (timer !== null) clearTimeout(timer);
  };
}

/**
 * Follows the events of a conversation, or of everything that the key can see, while the page is visible. Begins after the id that `begin`
 * returns for the id of the latest event. Returns a function that stops this.
 */
export function followEvents(
  id: string | undefined, begin: (latest: number) => number, onEvent: (event: api.Event) => void, onFailure: OnFailure,
): () => void {
  let last: number | null = null;
  let isFailing = false;
  const note: OnFailure = (error) => {
    isFailing = error !== null;
    onFailure(error);
  };
  return whileVisible(async (signal, isLive) => {
    const { client } = currentSession();
    if (isFailing || last === null) {
      const latest = await latestEventId(client, id ?? null, signal);
      note(null);
      last ??= begin(latest);
    }
    const after = last;
    const events = isLive ? client.events({ conversation: id, after, signal, reconnectForMs: 0 })
      : id === undefined ? client.items('GET /api/v1/events', { query: { after }, signal })
        : client.items('GET /api/v1/app-conversations/{id}/events', { path: { id }, query: { after, limit: 100 }, signal });
    for await (const event of events) {
      last = event.id;
      onEvent(event);
    }
  }, note);
}

/** Browsers have six connections to one server, for all their tabs. Two stay free for requests. */
const streamLocks = [1, 2, 3, 4].map((number) => `skep.stream.${number}`);
const pollMs = 2000;
const unexpectedFailureMs = 5000;

/** Gets why nothing can be followed now; null: it can again. */
type OnFailure = (error: Error | null) => void;

/**
 * Follows a stream only while the page is visible, and again after a failure, except if Skep refuses. If the tabs of the browser have too
 * many streams, calls `follow` every two seconds to read what is new (`isLive` is false), until one of the streams ends.
 */
export function whileVisible(follow: (signal: AbortSignal, isLive: boolean) => Promise<void>, onFailure: OnFailure): () => void {
  let abort: AbortController | null = null;
  const run = async (signal: AbortSignal) => {
    for (;;) {
      let pauseMs = pollMs;
      try {
        if (await withStreamLock(() => follow(signal, true))) return;
        await follow(signal, false);
        onFailure(null);
      } catch (error) {
        signal.throwIfAborted();
        if (isRefusal(error)) throw error;
        // Connections end now and then. If the next one can't be opened, that is a failure of its own.
        if (!isFailure(error, 'connection_lost')) onFailure(asError(error));
        pauseMs = isTemporary(error) ? Math.max(pollMs, error.retryAfterMs ?? 0) : unexpectedFailureMs;
      }
      await sleep(pauseMs, signal);
    }
  };
  const update = () => {
    if (document.hidden) {
      abort?.abort();
      abort = null;
    } else if (abort === null) {
      const { signal } = (abort = new AbortController());
      run(signal).catch((error: unknown) => {
        if (!signal.aborted && !isFailure(error, 'unauthorized')) onFailure(asError(error));
      });
    }
  };
  update();
  document.addEventListener('visibilitychange', update);
  return () => {
    document.removeEventListener('visibilitychange', update);
    abort?.abort();
  };
}

/** Runs `work` with a lock, which all tabs of the browser share. Returns false if none is free. */
async function withStreamLock(work: () => Promise<void>): Promise<boolean> {
  const run = () => work().then(() => true);
  // Browsers have locks only over HTTPS and on the server's machine.
  if (!isSecureContext) return await run();
  for (const name of streamLocks) {
    if (await navigator.locks.request(name, { ifAvailable: true }, async (lock) => lock !== null && await run())) return true;
  }
  return false;
}

/** Returns the last value that stayed the same for `ms` milliseconds. */
export function useDebounced<T>(value: T, ms = 200): T {
  const [settled, setSettled] = useState(value);
  useEffect(() => {
    const timer = setTimeout(() => setSettled(value), ms);
    return () => clearTimeout(timer);
  }, [value]);
  return settled;
}

/** Calls the function of the first render every `ms` milliseconds. */
export function useInterval(act: () => void, ms: number): void {
  useEffect(() => {
    const timer = setInterval(act, ms);
    return () => clearInterval(timer);
  }, []);
}
