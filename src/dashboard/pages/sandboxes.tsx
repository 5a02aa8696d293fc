import type { api } from '../../client/index.ts';
import { readableName } from '../format.ts';
import { route, setQuery } from '../route.ts';
import { canChange, currentSession } from '../session.ts';
import { useSpecs } from '../specs.ts';
import { texts } from '../texts.ts';
import { Button, type Column, Link, Select, Status, Time } from '../ui/controls.tsx';
import { Empty } from '../ui/feedback.tsx';
import { Page } from '../ui/page.tsx';
import { PagedTable } from '../ui/paged-table.tsx';
import { StartSandbox } from '../sandbox/start-sandbox.tsx';

const statuses = ['STARTING', 'RUNNING', 'PAUSING', 'PAUSED', 'RESUMING', 'ERROR', 'MISSING'] as const;

const columns: readonly Column<api.Sandbox>[] = [
  [texts.sandboxes.sandbox, 'main', ({ id, metadata }) => (
    <><Link to={['sandboxes', id]} class="row-link id">{id}</Link><Metadata metadata={metadata} /></>
  )],
  [texts.status, '', (item) => <Status value={item.status} label={sandboxStatus(item)} />],
  [texts.sandboxes.spec, 'wide', ({ sandbox_spec_id: spec }) => spec],
  [texts.sandboxes.why, 'wide dim clip', ({ status_detail: detail }) => detail],
  [texts.sandboxes.active, 'right dim', ({ last_active_at: at }) => <Time at={at} />],
];

export function SandboxesPage() {
  const { query } = route.value;
  const status = statuses.find((one) => one === query.get('status'));
  const spec = query.get('spec') ?? '';
  const metadata = query.get('metadata') ?? '';
  const { client } = currentSession();
  const specs = useSpecs();
  const isFiltered = status !== undefined || spec !== '' || metadata !== '';
  const start = canChange() && <Button kind="primary" icon="plus" onClick={() => setQuery({ new: 'yes' })}>{texts.sandboxes.start}</Button>;
  return (
    <Page title={texts.nav.sandboxes} actions={start}>
      <div class="filters">
        <Select label={texts.status} value={status ?? ''} onChange={(value) => setQuery({ status: value })}
          options={[['', texts.sandboxes.anyStatus], ...statuses.map((one) => [one, readableName(one)] as const)]} />
        <Select label={texts.sandboxes.spec} value={spec} onChange={(value) => setQuery({ spec: value })}
          options={[['', texts.sandboxes.anySpec], ...(specs.data ?? []).map(({ id }) => [id, id] as const)]} />
        <input value={metadata} placeholder={texts.sandboxes.metadata} aria-label={texts.sandboxes.metadata}
          onChange={(event) => setQuery({ metadata: event.currentTarget.value })} />
      </div>
      <PagedTable columns={columns} keyOf={({ id }) => id} filters={[status, spec, metadata]}
        isRelevant={({ kind }) => kind === 'sandbox_moved'}
        read={(page, signal) => client.request('GET /api/v1/sandboxes/search', {
          query: { ...page, status__eq: status, sandbox_spec_id__eq: spec || undefined, metadata__eq: metadataFilter(metadata) }, signal,
        })}
        empty={isFiltered ? <Empty icon="sandboxes" title={texts.noMatch}>{texts.noMatchHint}</Empty>
          : <Empty icon="sandboxes" title={texts.sandboxes.none}><p>{texts.sandboxes.noneHint}</p>{start}</Empty>} />
      {query.has('new') && <StartSandbox spec={query.get('new') ?? ''} specs={specs.data ?? []} onClose={() => setQuery({ new: null })} />}
    </Page>
  );
}

function metadataFilter(text: string): string[] | undefined {
  const pairs = text.split(/[\s,]+/).filter((pair) => pair.includes('='));
  return pairs.length === 0 ? undefined : pairs.map((pair) => pair.split('=').map(encodeURIComponent).join('='));
}

export function Metadata({ metadata }: { readonly metadata: api.Sandbox['metadata'] }) {
  return <>{Object.entries(metadata).map(([name, value]) => <span key={name} class="tag">{name}={value}</span>)}</>;
}

/** Returns the status as text. A paused sandbox is frozen or stopped. */
export function sandboxStatus({ status, pause_kind: kind }: api.Sandbox): string {
  return status === 'PAUSED' && kind !== null ? texts.sandbox.paused[kind] : readableName(status);
}
