import type { ComponentChildren } from 'preact';
import { isFailure } from '../../client/index.ts';
import type { Resource } from '../live.ts';
import { closeToast, toasts } from './actions.ts';
import { Button } from './controls.tsx';
import { Icon, type IconName } from './icons.tsx';

export function Toasts() {
  return (
    <div class="toasts" role="status">
      {toasts.value.map(({ id, text, isFailure }) => (
        <div key={id} class={isFailure ? 'toast failed' : 'toast'}>
          {isFailure && <Icon name="warning" />}
          <span>{text}</span>
          <Button kind="quiet" icon="close" label="Close" onClick={() => closeToast(id)} />
        </div>
      ))}
    </div>
  );
}

interface EmptyProps {
  readonly icon: IconName;
  readonly title: string;
  readonly children?: ComponentChildren;
}

/** A placeholder for an empty page, with advice. */
export function Empty({ icon, title, children }: EmptyProps) {
  return (
    <div class="empty">
      <Icon name={icon} />
      <h2>{title}</h2>
      <div>{children}</div>
    </div>
  );
}

/** A placeholder for a list that has nothing for its filters. */
export function NoMatch({ icon }: Pick<EmptyProps, 'icon'>) {
  return <Empty icon={icon} title="Nothing matches">Change or clear the filters above.</Empty>;
}

export function Failed({ error, onRetry }: { readonly error: Error; readonly onRetry?: () => void }) {
  const isMissing = isFailure(error) && error.status === 404;
  return (
    <div class="empty" role="alert">
      <Icon name="warning" />
      <h2>{isMissing ? 'Not found' : 'That did not work'}</h2>
      <p>{error.message}</p>
      {onRetry !== undefined && !isMissing && <Button onClick={onRetry}>Try again</Button>}
    </div>
  );
}

export function Loading({ rows = 6 }: { readonly rows?: number }) {
  return <div class="loading" role="status" aria-label="Loading">{Array.from({ length: rows }, (_, row) => <div key={row} />)}</div>;
}

interface LoadedProps<T> {
  readonly resource: Resource<T>;
  readonly rows?: number;
  readonly children: (data: T) => ComponentChildren;
}

/** Shows the loaded resource, its error, or that it is loading. */
export function Loaded<T>({ resource: { data, error, reload }, rows, children }: LoadedProps<T>) {
  if (data !== null) return <>{children(data)}</>;
  if (error !== null) return <Failed error={error} onRetry={reload} />;
  return <Loading rows={rows ?? 6} />;
}
