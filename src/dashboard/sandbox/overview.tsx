import { useEffect, useState } from 'preact/hooks';
import type { api, Sandbox } from '../../client/index.ts';
import { bytes, orNone, sandboxStatusName, shownTitle } from '../format.ts';
import { useResource } from '../live-resources.ts';
import { currentSession } from '../session.ts';
import { idlePolicyText } from '../specs.ts';
import { Facts, Link, Status, Time } from '../ui/controls.tsx';
import { Loaded } from '../ui/page.tsx';

interface OverviewProps {
  readonly sandbox: Sandbox;
  readonly spec: api.SandboxSpec | undefined;
  /** It is no longer configured. */
  readonly isSpecGone: boolean;
}

/** The usage, the history and the details of a sandbox. */
export function Overview({ sandbox, spec, isSpecGone }: OverviewProps) {
  const { state } = sandbox;
  const conversations = useResource((signal) => currentSession().client.request('GET /api/v1/app-conversations', {
    query: { sandbox_id__eq: state.id, limit: 20 }, signal,
  }), [state.id]);
  const talks = conversations.data?.items ?? [];
  return (
    <div class="columns">
      <div>
        <Usage sandbox={sandbox} />
        <History sandbox={state} />
      </div>
      <section class="card">
        <h2>Details</h2>
        <Facts facts={[
          ['Spec', `${state.sandbox_spec_id}${isSpecGone ? ' (no longer configured)' : ''}`],
          ['Owner', state.created_by_user_id],
          ['Conversations', talks.length > 0 && talks.map(({ id, title }) => (
            <p key={id}><Link to={['conversations', id]}>{shownTitle(title)}</Link></p>
          ))],
          ['Metadata', Object.keys(state.metadata).length > 0 && <Metadata metadata={state.metadata} />],
          ['Created', <Time at={state.created_at} />],
          ['Last active', <Time at={state.last_active_at} />],
          ['Automatic actions', spec !== undefined && idlePolicyText(spec.rest)],
          ['Expires', state.expires_at !== null && <Time at={state.expires_at} />],
          ['Paused', state.paused_by !== null && actorNames[state.paused_by]],
        ]} />
      </section>
    </div>
  );
}

export function Metadata({ metadata }: { readonly metadata: api.Sandbox['metadata'] }) {
  return <>{Object.entries(metadata).map(([name, value]) => <span key={name} class="tag">{name}={value}</span>)}</>;
}

const actorNames: Readonly<Record<api.Event['actor'], string>> = {
  user: 'by a user', agent: 'by the agent', skep: 'by Skep', runtime: 'noticed in the runtime',
};

/** The status changes of a sandbox with their reasons. */
function History({ sandbox }: { readonly sandbox: api.Sandbox }) {
  const resource = useResource(async (signal) => {
    const query = { sandbox_id__eq: sandbox.id, kinds: ['sandbox_moved'], limit: 100 } as const;
    const events = await Array.fromAsync(currentSession().client.items('GET /api/v1/events', { query, signal }));
    return events.filter((event) => event.kind === 'sandbox_moved').toReversed();
  }, [sandbox.id, sandbox.updated_at]);
  return (
    <section class="card">
      <h2>History</h2>
      <Loaded resource={resource} rows={3}>
        {(moves) => (
          <ol class="rows">
            {moves.map(({ id, at, data, actor, user_id: user, reason }) => (
              <li key={id}>
                <Status value={data.to ?? 'deleted'} label={sandboxStatusName(data.to ?? 'deleted', data.pause_kind)} />
                <span class="dim">{user === null ? actorNames[actor] : `by ${user}`}</span>
                <Time at={at} />
                {reason !== null && <p>{reason}</p>}
              </li>
            ))}
            {moves.at(-1)?.data.from !== null && <li class="dim">Earlier events are not kept.</li>}
          </ol>
        )}
      </Loaded>
    </section>
  );
}

const samplesShown = 60;
const sampleMs = 5000;

function Usage({ sandbox }: { readonly sandbox: Sandbox }) {
  const [samples, setSamples] = useState<readonly api.SandboxUsage[]>([]);
  const isRunning = sandbox.state.status === 'RUNNING';
  const { data, error, reload } = useResource((signal) => sandbox.usage({ signal }), [sandbox.id, isRunning]);
  useEffect(() => {
    if (data !== null) setSamples((last) => [...last, data].slice(-samplesShown));
  }, [data]);
  useEffect(() => {
    if (!isRunning) return;
    const timer = setInterval(() => {
      if (document.hidden) return;
      // Started again only by the result, because measuring the disk can take long.
      clearInterval(timer);
      reload();
    }, sampleMs);
    return () => clearInterval(timer);
  }, [data, error, isRunning]);
  const last = samples.at(-1);
  const memoryLimit = last?.memory_limit_bytes;
  if (error !== null && last === undefined) {
    return (
      <section class="card"><h2>Usage</h2><p class="dim">{error.message}</p></section>
    );
  }
  const cpu = samples.flatMap(({ cpu_percent: percent }) => percent ?? []);
  const memory = samples.flatMap(({ memory_bytes: used }) => used ?? []);
  return (
    <section class="card usage">
      <h2>Usage</h2>
      <div class="numbers">
        <figure>
          <figcaption>CPU</figcaption><b>{orNone(last?.cpu_percent, (value) => `${value.toFixed(0)} %`)}</b>
          <Sparkline label="CPU" values={cpu} max={Math.max(100, ...cpu)} />
        </figure>
        <figure>
          <figcaption>Memory{memoryLimit && `, limit ${bytes(memoryLimit)}`}</figcaption><b>{orNone(last?.memory_bytes, bytes)}</b>
          <Sparkline label="Memory" values={memory} max={memoryLimit ?? Math.max(1, ...memory) * 1.5} />
        </figure>
        <figure><figcaption>Disk</figcaption><b>{orNone(last?.disk_bytes, bytes)}</b></figure>
        <figure><figcaption>Processes</figcaption><b>{orNone(last?.pids, String)}</b></figure>
      </div>
      {!isRunning && <p class="dim">It does not run, so it uses no CPU time.</p>}
    </section>
  );
}

interface SparklineProps {
  readonly label: string;
  readonly values: readonly number[];
  readonly max: number;
}

/** A line chart of measured values, the newest on the right. */
function Sparkline({ label, values, max }: SparklineProps) {
  if (values.length < 2) return null;
  const points = values.map((value, index) => {
    const x = 100 - ((values.length - 1 - index) / (samplesShown - 1)) * 100;
    return `${x.toFixed(1)},${(29 - (max === 0 ? 0 : Math.min(1, value / max)) * 28).toFixed(1)}`;
  });
  const first = points[0]?.split(',')[0] ?? '100';
  return (
    <svg class="sparkline" viewBox="0 0 100 30" preserveAspectRatio="none" role="img" aria-label={label}>
      <polygon points={`${first},30 ${points.join(' ')} 100,30`} />
      <polyline points={points.join(' ')} />
    </svg>
  );
}
