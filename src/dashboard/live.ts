import { signal } from '@preact/signals';
import { useCallback, useEffect, useRef, useState } from 'preact/hooks';
import { type api, isFailure } from '../client/index.ts';
import { currentSession, isOnline } from './session.ts';

export interface Resource<T> {
  /** The last loaded data. It is kept during a reload, unless the resource no longer exists. */
  readonly data: T | null;
  readonly error: Error | null;
  readonly reload: () => void;
}

type Load<T> = (signal: AbortSignal) => Promise<T>;

/** Loads a resource. Reloads it when `deps` change, when an event concerns it, and when the server is reachable again. */
export function useResource<T>(load: Load<T>, deps: readonly unknown[], isRelevant?: (event: api.Event) => boolean): Resource<T> {
  const [state, setState] = useState<{ readonly data: T | null; readonly error: Error | null }>({ data: null, error: null });
  const [round, setRound] = useState(0);
  const reload = useCallback(() => setRound((last) => last + 1), []);
  useEffect(() => {
    const abort = new AbortController();
    load(abort.signal).then(
      (data) => abort.signal.aborted || setState({ data, error: null }),
      (error: unknown) => abort.signal.aborted || setState(({ data }) => ({ data: isGone(error) ? null : data, error: asError(error) })),
    );
    return () => abort.abort();
  }, [...deps, round]);
  useChanges((event) => isRelevant?.(event) === true && reload());
  const wasOnline = useRef(true);
  useEffect(() => {
    if (isOnline.value && !wasOnline.current) reload();
    wasOnline.current = isOnline.value;
  }, [isOnline.value]);
  return { ...state, reload };
}

function isGone(error: unknown): boolean {
  return isFailure(error) && error.status === 404;
}

export function asError(error: unknown): Error {
  return error instanceof Error ? error : new Error(String(error));
}

const latestEvents = signal<readonly api.Event[]>([]);

/** Calls `onEvent` for changes in everything that the key can see. Events arrive in batches, at most four a second. */
export function useChanges(onEvent: (event: api.Event) => void): void {
  const callback = useRef(onEvent);
  callback.current = onEvent;
  useEffect(() => latestEvents.subscribe((events) => {
    // Several events cause only one reload, because updates are batched.
    for (const event of events) callback.current(event);
  }), []);
}

/** Follows the changes while the page is visible. Returns a function that stops this. */
export function followChanges(): () => void {
  let waiting: api.Event[] = [];
  let timer: number | null = null;
  const stop = whileVisible(async (signal, last) => {
    for await (const event of currentSession().client.events({ after: last.id, signal })) {
      last.id = event.id;
      waiting.push(event);
      timer ??= setTimeout(() => {
        [latestEvents.value, waiting, timer] = [waiting, [], null];
      }, 250);
    }
  });
  return () => {
    stop();
    if (timer !== null) clearTimeout(timer);
    latestEvents.value = [];
  };
}

interface LastEvent {
  /** The id of the last received event. */
  id: number | undefined;
}

/** Follows a stream only while the page is visible, because browsers have few connections to one server for all tabs. */
export function whileVisible(
  follow: (signal: AbortSignal, last: LastEvent) => Promise<void>, onFailure?: (error: Error) => void,
): () => void {
  let abort: AbortController | null = null;
  const last: LastEvent = { id: undefined };
  const update = () => {
    if (document.hidden) {
      abort?.abort();
      abort = null;
    } else if (abort === null) {
      const { signal } = (abort = new AbortController());
      follow(signal, last).catch((error: unknown) => {
        if (!signal.aborted && !isFailure(error, 'unauthorized')) onFailure?.(asError(error));
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

/** Returns the last value that stayed the same for `ms` milliseconds. */
export function useDebounced<T>(value: T, ms = 200): T {
  const [settled, setSettled] = useState(value);
  useEffect(() => {
    const timer = setTimeout(() => setSettled(value), ms);
    return () => clearTimeout(timer);
  }, [value]);
  return settled;
}

/** Renders again every `ms` milliseconds, for times relative to now. */
export function useTick(ms: number): void {
  const [, setTick] = useState(0);
  useEffect(() => {
    const timer = setInterval(() => setTick((tick) => tick + 1), ms);
    return () => clearInterval(timer);
  }, [ms]);
}
