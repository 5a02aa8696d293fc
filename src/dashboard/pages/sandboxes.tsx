import { useState } from 'preact/hooks';
import type { api } from '../../client/index.ts';
import { readableName, sandboxStatusName } from '../format.ts';
import { useDebounced } from '../live-resources.ts';
import { navigate, route, setQuery } from '../route.ts';
import { Metadata } from '../sandbox/overview.tsx';
import { canChange, currentSession } from '../session.ts';
import { defaultSpecLabel, useSpecs } from '../specs.ts';
import { Button, type Column, Field, Link, Select, Status, Time } from '../ui/controls.tsx';
import { Dialog, type FormTexts, FormDialog } from '../ui/dialog.tsx';
import { Empty, Loaded, NoMatch, Page } from '../ui/page.tsx';
import { PagedTable } from '../ui/paged-table.tsx';

const statuses: readonly api.SandboxStatus[] = ['STARTING', 'RUNNING', 'PAUSING', 'PAUSED', 'RESUMING', 'ERROR', 'MISSING'];

const columns: readonly Column<api.Sandbox>[] = [
  ['Sandbox', 'main', ({ id, metadata }) => (
    <><Link to={['sandboxes', id]} class="row-link id">{id}</Link><Metadata metadata={metadata} /></>
  )],
  ['Status', '', (item) => <Status value={item.status} label={sandboxStatusName(item.status, item.pause_kind)} />],
  ['Spec', 'wide', ({ sandbox_spec_id: spec }) => spec],
  ['Why', 'wide dim clip', ({ status_detail: detail }) => detail],
  ['Last active', 'right dim', ({ last_active_at: at }) => <Time at={at} />],
];

const startTitle = 'Start a sandbox';

function closeStart(): void {
  setQuery({ new: null });
}

export function SandboxesPage() {
  const { query } = route.value;
  const status = statuses.find((one) => one === query.get('status'));
  const spec = query.get('spec') ?? '';
  const metadata = query.get('metadata') ?? '';
  const { client } = currentSession();
  const specs = useSpecs();
  const settled = useDebounced(metadata);
  const pair = metadataFilter(settled);
  const isFiltered = status !== undefined || spec !== '' || pair !== undefined;
  const start = canChange() && <Button kind="primary" icon="plus" onClick={() => setQuery({ new: 'yes' })}>Start a sandbox</Button>;
  return (
    <Page title="Sandboxes" actions={start}>
      <div class="filters">
        <Select label="Status" value={status ?? ''} onChange={(value) => setQuery({ status: value })}
          options={[['', 'Any status'], ...statuses.map((one) => [one, readableName(one)] as const)]} />
        <Select label="Spec" value={spec} onChange={(value) => setQuery({ spec: value })}
          options={[['', 'Any spec'], ...(specs.data ?? []).map(({ id }) => [id, id] as const)]} />
        <input value={metadata} placeholder="Metadata: task=42" aria-label="Metadata: task=42"
          onInput={(event) => setQuery({ metadata: event.currentTarget.value })} />
      </div>
      <PagedTable columns={columns} keyOf={({ id }) => id} filters={[status, spec, settled]}
        isRelevant={({ kind }) => kind === 'sandbox_moved'}
        read={(page, signal) => client.request('GET /api/v1/sandboxes/search', {
          query: { ...page, status__eq: status, sandbox_spec_id__eq: spec || undefined, metadata__eq: pair }, signal,
        })}
        empty={isFiltered ? <NoMatch icon="sandboxes" />
          : <Empty icon="sandboxes" title="No sandboxes">
            <p>A sandbox is started by a conversation, by a program, or here.</p>{start}
          </Empty>} />
      {canChange() && query.has('new') && (specs.data === null
        ? <Dialog title={startTitle} onClose={closeStart}><Loaded resource={specs}>{() => null}</Loaded></Dialog>
        : <StartSandbox specs={specs.data} spec={specs.data.find(({ id }) => id === query.get('new'))?.id ?? ''} onClose={closeStart} />
      )}
    </Page>
  );
}

/** Returns the filter for a pair `key=value`. The value may have any characters. Undefined if the text is no pair. */
function metadataFilter(text: string): string[] | undefined {
  const [, key, value] = /^([^=]+)=(.*)$/s.exec(text.trim()) ?? [];
  return key === undefined || value === undefined ? undefined : [`${key.trim()}=${value.trim()}`];
}

interface StartSandboxProps {
  /** The spec that is chosen first; empty for the default. */
  readonly spec: string;
  readonly specs: readonly api.SandboxSpec[];
  readonly onClose: () => void;
}

function StartSandbox({ spec: chosen, specs, onClose }: StartSandboxProps) {
  const [spec, setSpec] = useState(chosen);
  const start = async ({ env = '', metadata = '', minutes }: FormTexts) => {
    const sandbox = await currentSession().client.sandboxes.start({
      spec: spec || undefined, env: pairsOf(env), metadata: pairsOf(metadata),
      timeout_seconds: minutes === undefined ? undefined : Math.round(Number(minutes) * 60),
    });
    return () => navigate(['sandboxes', sandbox.id]);
  };
  return (
    <FormDialog title={startTitle} submit="Start" onClose={onClose} onSubmit={start}>
      <Field label="Spec" hint={specs.find(({ id }) => id === spec)?.description ?? undefined}>
        <Select value={spec} onChange={setSpec}
          options={[['', defaultSpecLabel(specs)], ...specs.map(({ id }) => [id, id] as const)]} />
      </Field>
      <Field label="Variables" hint="One per line. They are never shown again.">
        <textarea name="env" rows={2} class="mono" spellcheck={false} placeholder="NAME=value" />
      </Field>
      <Field label="Metadata" hint="Keys and values to find it by, one per line.">
        <textarea name="metadata" rows={2} class="mono" spellcheck={false} placeholder="task=42" />
      </Field>
      <Field label="Lifetime in minutes" hint="Then it is deleted, even if it is in use. Empty: the maximum of the spec.">
        <input name="minutes" type="number" min={1} />
      </Field>
    </FormDialog>
  );
}

/** Throws if a line has another form. */
function pairsOf(text: string): Record<string, string> {
  const lines = text.split('\n').filter((line) => line.trim() !== '');
  return Object.fromEntries(lines.map((line) => {
    const [, name, value = ''] = /^\s*([^=\s]+)\s*=(.*)$/.exec(line) ?? [];
    if (name === undefined) throw new Error(`The lines have the form NAME=value, but one is: ${line}`);
    return [name, value.trim()];
  }));
}
