import { signal } from '@preact/signals';
import type { ComponentChildren } from 'preact';
import { useState } from 'preact/hooks';
import { isFailure } from '../../client/index.ts';
import type { Resource } from '../live.ts';
import { texts } from '../texts.ts';
import { Button } from './controls.tsx';
import { Icon, type IconName } from './icons.tsx';

interface Toast {
  readonly id: number;
  readonly text: string;
  readonly isFailure: boolean;
}

const toasts = signal<readonly Toast[]>([]);
let nextToast = 1;

/** Says for a few seconds what was done; a failure stays until it is closed. */
export function toast(text: string, isFailure = false): void {
  const id = nextToast++;
  toasts.value = [...toasts.value.filter((shown) => shown.text !== text), { id, text, isFailure }];
  if (!isFailure) setTimeout(() => closeToast(id), 4000);
}

function closeToast(id: number): void {
  toasts.value = toasts.value.filter((shown) => shown.id !== id);
}

/** Shows why something failed, unless the page says so itself. */
export function toastFailure(error: unknown): void {
  if (!isFailure(error, 'unauthorized')) toast(messageOf(error), true);
}

export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

export function Toasts() {
  return (
    <div class="toasts" role="status">
      {toasts.value.map(({ id, text, isFailure }) => (
        <div key={id} class={isFailure ? 'toast failed' : 'toast'}>
          {isFailure && <Icon name="warning" />}
          <span>{text}</span>
          <Button kind="quiet" icon="close" label={texts.close} onClick={() => closeToast(id)} />
        </div>
      ))}
    </div>
  );
}

/** Runs what a control starts, once at a time. A failure becomes a toast. */
export function useAction(): readonly [isBusy: boolean, run: (work: () => Promise<unknown>) => Promise<void>] {
  const [isBusy, setBusy] = useState(false);
  const run = async (work: () => Promise<unknown>) => {
    if (isBusy) return;
    setBusy(true);
    try {
      await work();
    } catch (error) {
      toastFailure(error);
    } finally {
      setBusy(false);
    }
  };
  return [isBusy, run];
}

interface EmptyProps {
  readonly icon: IconName;
  readonly title: string;
  readonly children?: ComponentChildren;
}

/** What stands where nothing is, and what to do about that. */
export function Empty({ icon, title, children }: EmptyProps) {
  return (
    <div class="empty">
      <Icon name={icon} />
      <h2>{title}</h2>
      <div>{children}</div>
    </div>
  );
}

export function Failed({ error, onRetry }: { readonly error: Error; readonly onRetry?: () => void }) {
  const isMissing = isFailure(error) && error.status === 404;
  return (
    <div class="empty" role="alert">
      <Icon name="warning" />
      <h2>{isMissing ? texts.missing : texts.failed}</h2>
      <p>{error.message}</p>
      {onRetry !== undefined && !isMissing && <Button onClick={onRetry}>{texts.tryAgain}</Button>}
    </div>
  );
}

export function Loading({ rows = 6 }: { readonly rows?: number }) {
  return <div class="loading" role="status" aria-label={texts.loading}>{Array.from({ length: rows }, (_, row) => <div key={row} />)}</div>;
}

interface LoadedProps<T> {
  readonly resource: Resource<T>;
  readonly rows?: number;
  readonly children: (data: T) => ComponentChildren;
}

/** Shows what was loaded, or how that stands. */
export function Loaded<T>({ resource: { data, error, reload }, rows, children }: LoadedProps<T>) {
  if (data !== null) return <>{children(data)}</>;
  if (error !== null) return <Failed error={error} onRetry={reload} />;
  return <Loading rows={rows ?? 6} />;
}
