import type { api } from '../../client/index.ts';
import { readableName, sandboxStatusName } from '../format.ts';
import { route, setQuery } from '../route.ts';
import { canChange, currentSession } from '../session.ts';
import { useSpecs } from '../specs.ts';
import { Button, type Column, Link, Select, Status, Time } from '../ui/controls.tsx';
import { Empty, NoMatch } from '../ui/feedback.tsx';
import { Page } from '../ui/page.tsx';
import { PagedTable } from '../ui/paged-table.tsx';
import { StartSandbox } from '../sandbox/start-sandbox.tsx';

const statuses = ['STARTING', 'RUNNING', 'PAUSING', 'PAUSED', 'RESUMING', 'ERROR', 'MISSING'] as const;

const columns: readonly Column<api.Sandbox>[] = [
  ['Sandbox', 'main', ({ id, metadata }) => (
    <><Link to={['sandboxes', id]} class="row-link id">{id}</Link><Metadata metadata={metadata} /></>
  )],
  ['Status', '', (item) => <Status value={item.status} label={sandboxStatusName(item.status, item.pause_kind)} />],
  ['Spec', 'wide', ({ sandbox_spec_id: spec }) => spec],
  ['Why', 'wide dim clip', ({ status_detail: detail }) => detail],
  ['Last active', 'right dim', ({ last_active_at: at }) => <Time at={at} />],
];

export function SandboxesPage() {
  const { query } = route.value;
  const status = statuses.find((one) => one === query.get('status'));
  const spec = query.get('spec') ?? '';
  const metadata = query.get('metadata') ?? '';
  const { client } = currentSession();
  const specs = useSpecs();
  const isFiltered = status !== undefined || spec !== '' || metadata !== '';
  const start = canChange() && <Button kind="primary" icon="plus" onClick={() => setQuery({ new: 'yes' })}>Start a sandbox</Button>;
  return (
    <Page title="Sandboxes" actions={start}>
      <div class="filters">
        <Select label="Status" value={status ?? ''} onChange={(value) => setQuery({ status: value })}
          options={[['', 'Any status'], ...statuses.map((one) => [one, readableName(one)] as const)]} />
        <Select label="Spec" value={spec} onChange={(value) => setQuery({ spec: value })}
          options={[['', 'Any spec'], ...(specs.data ?? []).map(({ id }) => [id, id] as const)]} />
        <input value={metadata} placeholder="Metadata: task=42" aria-label="Metadata: task=42"
          onChange={(event) => setQuery({ metadata: event.currentTarget.value })} />
      </div>
      <PagedTable columns={columns} keyOf={({ id }) => id} filters={[status, spec, metadata]}
        isRelevant={({ kind }) => kind === 'sandbox_moved'}
        read={(page, signal) => client.request('GET /api/v1/sandboxes/search', {
          query: { ...page, status__eq: status, sandbox_spec_id__eq: spec || undefined, metadata__eq: metadataFilter(metadata) }, signal,
        })}
        empty={isFiltered ? <NoMatch icon="sandboxes" />
          : <Empty icon="sandboxes" title="No sandboxes">
            <p>A sandbox is started by a conversation, by a program, or here.</p>{start}
          </Empty>} />
      {query.has('new') && specs.data !== null && (
        <StartSandbox specs={specs.data} spec={specs.data.find(({ id }) => id === query.get('new'))?.id ?? ''}
          onClose={() => setQuery({ new: null })} />
      )}
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
