import type { ComponentChildren } from 'preact';
import { useEffect } from 'preact/hooks';
import { isGone, type Resource } from '../live-resources.ts';
import { Button, Link } from './controls.tsx';
import { Icon, type IconName } from './icons.tsx';

interface PageProps {
  readonly title: string;
  readonly isId?: boolean;
  /** The link to the list that contains the resource of this page. */
  readonly back?: readonly [label: string, path: readonly string[]];
  readonly meta?: ComponentChildren;
  readonly actions?: ComponentChildren;
  /** The page fills the height, and its parts scroll. */
  readonly isFull?: boolean;
  readonly children: ComponentChildren;
}

export function Page({ title, isId = false, back, meta, actions, isFull = false, children }: PageProps) {
  useEffect(() => {
    document.title = `${title} · Skep`;
  }, [title]);
  return (
    <main id="main" class={isFull ? 'page full' : 'page'} tabIndex={-1}>
      <header class="page-header">
        <div class="page-title">
          {back !== undefined && <Link to={back[1]} class="crumb">{back[0]}</Link>}
          <h1 class={isId ? 'id' : ''}>{title}</h1>
          {meta}
        </div>
        <div class="actions">{actions}</div>
      </header>
      {children}
    </main>
  );
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
  return <Loading rows={rows} />;
}

/** The page of one resource. The children render the whole page after loading; before, only the name is shown. */
export function LoadedPage<T>({ resource, children, ...page }: Omit<PageProps, 'children'> & LoadedProps<T>) {
  if (resource.data !== null) return <>{children(resource.data)}</>;
  return <Page {...page}><Loaded resource={resource}>{() => null}</Loaded></Page>;
}

export function Loading({ rows = 6 }: { readonly rows?: number | undefined }) {
  return <div class="loading" role="status" aria-label="Loading">{Array.from({ length: rows }, (_, row) => <div key={row} />)}</div>;
}

export function Failed({ error, onRetry }: { readonly error: Error; readonly onRetry?: () => void }) {
  const isMissing = isGone(error);
  return (
    <div class="empty" role="alert">
      <Icon name="warning" />
      <h2>{isMissing ? 'Not found' : 'That did not work'}</h2>
      <p>{error.message}</p>
      {onRetry !== undefined && !isMissing && <Button onClick={onRetry}>Try again</Button>}
    </div>
  );
}

/** Says why the data below does not follow the server now, if so. */
export function NotUpToDate({ error }: { readonly error: Error | null }) {
  return error && <p class="banner bad" role="status">Not up to date: {error.message}</p>;
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
