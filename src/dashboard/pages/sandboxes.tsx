import { useState } from 'preact/hooks';
import type { api } from '../../client/index.ts';
import { words } from '../format.ts';
import { useResource } from '../live.ts';
import { route, setQuery } from '../route.ts';
import { canChange, currentSession } from '../session.ts';
import { useSpecs } from '../specs.ts';
import { texts } from '../texts.ts';
import { Button, Head, Link, More, Select, Status, Time } from '../ui/controls.tsx';
import { Empty, Loaded } from '../ui/feedback.tsx';
import { Page } from '../ui/page.tsx';
import { takePages } from '../ui/pages.ts';
import { StartSandbox } from '../sandbox/start-sandbox.tsx';

const statuses = ['STARTING', 'RUNNING', 'PAUSING', 'PAUSED', 'RESUMING', 'ERROR', 'MISSING'] as const;

export function SandboxesPage() {
  const { query } = route.value;
  const status = statuses.find((one) => one === query.get('status'));
  const spec = query.get('spec') ?? '';
  const metadata = query.get('metadata') ?? '';
  const [pages, setPages] = useState(1);
  const { client } = currentSession();
  const specs = useSpecs();
  const resource = useResource((signal) => takePages(pages, (page) => client.request('GET /api/v1/sandboxes/search', {
    query: { ...page, status__eq: status, sandbox_spec_id__eq: spec || undefined, metadata__eq: metadataFilter(metadata) }, signal,
  })), [status, spec, metadata, pages], ({ kind }) => kind === 'sandbox_moved');
  const isFiltered = status !== undefined || spec !== '' || metadata !== '';
  const start = canChange() && <Button kind="primary" icon="plus" onClick={() => setQuery({ new: 'yes' })}>{texts.sandboxes.start}</Button>;
  return (
    <Page title={texts.nav.sandboxes} actions={start}>
      <div class="filters">
        <Select label={texts.status} value={status ?? ''} onChange={(value) => setQuery({ status: value })}
          options={[['', texts.sandboxes.anyStatus], ...statuses.map((one) => [one, words(one)] as const)]} />
        <Select label={texts.sandboxes.spec} value={spec} onChange={(value) => setQuery({ spec: value })}
          options={[['', texts.sandboxes.anySpec], ...(specs.data ?? []).map(({ id }) => [id, id] as const)]} />
        <input value={metadata} placeholder={texts.sandboxes.metadata} aria-label={texts.sandboxes.metadata}
          onChange={(event) => setQuery({ metadata: event.currentTarget.value })} />
      </div>
      <Loaded resource={resource}>
        {({ items, hasMore }) => items.length === 0
          ? <Empty icon="sandboxes" title={isFiltered ? texts.noMatch : texts.sandboxes.none}>
            {isFiltered ? texts.noMatchHint : <><p>{texts.sandboxes.noneHint}</p>{start}</>}
          </Empty>
          : <><List items={items} /><More onMore={hasMore ? () => setPages(pages + 1) : null} /></>}
      </Loaded>
      {query.has('new') && <StartSandbox spec={query.get('new') ?? ''} specs={specs.data ?? []} onClose={() => setQuery({ new: null })} />}
    </Page>
  );
}

function metadataFilter(text: string): string[] | undefined {
  const pairs = text.split(/[\s,]+/).filter((pair) => pair.includes('='));
  return pairs.length === 0 ? undefined : pairs.map((pair) => pair.split('=').map(encodeURIComponent).join('='));
}

function List({ items }: { readonly items: readonly api.Sandbox[] }) {
  return (
    <table>
      <Head columns={[
        [texts.sandboxes.sandbox], [texts.status], [texts.sandboxes.spec, 'wide'], [texts.sandboxes.why, 'wide'],
        [texts.sandboxes.active, 'right'],
      ]} />
      <tbody>
        {items.map((item) => (
          <tr key={item.id}>
            <td class="main">
              <Link to={['sandboxes', item.id]} class="row-link id">{item.id}</Link><Metadata metadata={item.metadata} />
            </td>
            <td><Status value={item.status} label={sandboxStatus(item)} /></td>
            <td class="wide">{item.sandbox_spec_id}</td>
            <td class="wide dim clip">{item.status_detail}</td>
            <td class="right dim"><Time at={item.last_active_at} /></td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

export function Metadata({ metadata }: { readonly metadata: api.Sandbox['metadata'] }) {
  return <>{Object.entries(metadata).map(([name, value]) => <span key={name} class="tag">{name}={value}</span>)}</>;
}

/** A paused one is frozen or stopped. */
export function sandboxStatus({ status, pause_kind: kind }: api.Sandbox): string {
  return status === 'PAUSED' && kind !== null ? texts.sandbox.paused[kind] : words(status);
}
