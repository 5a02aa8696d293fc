import type { ComponentChildren } from 'preact';
import { useEffect } from 'preact/hooks';
import { Link } from './controls.tsx';

interface PageProps {
  readonly title: string;
  readonly isId?: boolean;
  /** Where it belongs to, if it is one thing of a list. */
  readonly back?: readonly [label: string, path: readonly string[]];
  readonly meta?: ComponentChildren;
  readonly actions?: ComponentChildren;
  /** It takes the whole height, and its parts scroll. */
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
