import type { ComponentChildren } from 'preact';
import { useEffect } from 'preact/hooks';
import type { Resource } from '../live.ts';
import { Link } from './controls.tsx';
import { Loaded } from './feedback.tsx';

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

interface LoadedPageProps<T> extends Omit<PageProps, 'children'> {
  readonly resource: Resource<T>;
  readonly children: (data: T) => ComponentChildren;
}

/** The page of one resource. The children render the whole page after loading; before, only the name is shown. */
export function LoadedPage<T>({ resource, children, ...page }: LoadedPageProps<T>) {
  if (resource.data !== null) return <>{children(resource.data)}</>;
  return <Page {...page}><Loaded resource={resource}>{() => null}</Loaded></Page>;
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
