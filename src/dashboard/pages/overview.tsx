import type { api } from '../../client/index.ts';
import { bytes, milliseconds, orNone, plural, relativeTime, readableName, shownTitle } from '../format.ts';
import { useInterval, useResource } from '../live-resources.ts';
import { currentSession } from '../session.ts';
import { Link, Meter, Status, Time } from '../ui/controls.tsx';
import { Loaded, Page } from '../ui/page.tsx';

const refreshMs = 5000;
const kinds: ReadonlySet<api.Event['kind']> = new Set(['sandbox_moved', 'start_step', 'execution_changed']);

export function OverviewPage() {
  const { client, me } = currentSession();
  const resource = useResource((signal) => client.request('GET /api/v1/overview', { signal }), [], ({ kind }) => kinds.has(kind));
  useInterval(() => document.hidden || resource.reload(), refreshMs);
  return (
    <Page title="Overview" meta={me.access !== 'admin' && <span class="tag">Only yours</span>}>
      <Loaded resource={resource}>
        {(overview) => (
          <>
            <Counts overview={overview} />
            <Problems problems={overview.problems} />
            <div class="flow">
              <Starts starts={overview.starts} />
              <Limits limits={overview.limits} />
              {overview.deployment !== null && <Machine deployment={overview.deployment} />}
              <Parts parts={overview.parts} />
              {overview.deployment !== null && overview.deployment.pools.length > 0 && <Pools pools={overview.deployment.pools} />}
              <Upcoming upcoming={overview.upcoming} />
            </div>
          </>
        )}
      </Loaded>
    </Page>
  );
}

function Counts({ overview: { sandboxes, conversations } }: { readonly overview: api.Overview }) {
  const { by_status: status, in_quarantine: quarantine } = sandboxes;
  // The list filters by one status, so the link leads to the first one that some have.
  const inStatus = (label: string, ...of: readonly [api.SandboxStatus, ...api.SandboxStatus[]]) => [
    of[0], label, of.reduce((sum, one) => sum + status[one], 0), ['sandboxes'], { status: of.find((one) => status[one] > 0) ?? of[0] },
  ] as const;
  const { running, waiting_for_permission: waiting } = conversations.by_execution_status;
  const counts = [
    inStatus('Running', 'RUNNING'), inStatus('Starting', 'STARTING', 'RESUMING'),
    inStatus('Paused', 'PAUSED', 'PAUSING'), inStatus('Failed', 'ERROR', 'MISSING'),
    ['running', 'Agents at work', running, ['conversations'], {}],
    ['waiting_for_permission', 'Waiting for you', waiting, ['conversations'], {}],
  ] as const;
  return (
    <div class="counts">
      {counts.map(([value, label, count, path, query]) => (
        <Link key={label} to={path} query={query} class={count === 0 ? 'none' : ''}>
          <b>{count}</b><Status value={value} label={label} />
        </Link>
      ))}
      {quarantine > 0 && (
        <Link to={['sandboxes']} class=""><b>{quarantine}</b><Status value="ERROR" label="In quarantine" /></Link>
      )}
    </div>
  );
}

function Problems({ problems }: { readonly problems: readonly api.OverviewProblem[] }) {
  if (problems.length === 0) return <p class="banner good">Nothing fails, and nothing takes long to start.</p>;
  return (
    <section class="card">
      <h2>Needs attention <small>{problems.length}</small></h2>
      <ul class="rows">
        {problems.map(({ kind, id, title, status, status_detail: detail, sandbox_spec_id: spec, since }) => (
          <li key={id}>
            <Status value={status} />
            <Link to={[kind === 'sandbox' ? 'sandboxes' : 'conversations', id]} class={title === null ? 'id' : ''}>
              {shownTitle(title, id)}
            </Link>
            <span class="tag">{spec}</span>
            <Time at={since} />
            {detail !== null && <p>{detail}</p>}
          </li>
        ))}
      </ul>
    </section>
  );
}

function Starts({ starts }: { readonly starts: api.OverviewStarts }) {
  const { since, succeeded, failed, from_pool: fromPool, p50_ms: p50, p95_ms: p95 } = starts;
  return (
    <section class="card">
      <h2>Starts <small>this server, since {relativeTime(since)}</small></h2>
      <div class="numbers">
        <figure><figcaption>p50</figcaption><b>{orNone(p50, milliseconds)}</b></figure>
        <figure><figcaption>p95</figcaption><b>{orNone(p95, milliseconds)}</b></figure>
        <figure><figcaption>Succeeded</figcaption><b>{succeeded}</b></figure>
        <figure><figcaption>Failed</figcaption><b class={failed > 0 ? 'bad' : ''}>{failed}</b></figure>
        <figure><figcaption>From a pool</figcaption><b>{fromPool}</b></figure>
      </div>
    </section>
  );
}

function Limits({ limits }: { readonly limits: readonly api.OverviewLimit[] }) {
  return (
    <section class="card">
      <h2>Limits</h2>
      {limits.map(({ limit, max, used, user_id: user }) => {
        const label = `${readableName(limit)}${user === null ? '' : ` (${user})`}`;
        return (
          <Meter key={limit} label={label} value={used} max={max} text={max === null ? `${used}, no limit` : `${used} / ${max}`} />
        );
      })}
    </section>
  );
}

function freeText(free: number, total: number): string {
  return `${bytes(free)} of ${bytes(total)} free`;
}

function Machine({ deployment: { disk, memory } }: { readonly deployment: api.OverviewDeployment }) {
  const usedMemory = memory.machine_total_bytes - memory.machine_free_bytes;
  return (
    <section class="card">
      <h2>Machine</h2>
      {disk !== null && (
        <Meter label={`Disk (limit ${disk.limit_percent} %)`} value={disk.used_percent} max={100}
          text={freeText(disk.free_bytes, disk.total_bytes)} />
      )}
      <Meter label="Memory" value={usedMemory} max={memory.machine_total_bytes}
        text={freeText(memory.machine_free_bytes, memory.machine_total_bytes)} />
      <Meter label="Agents’ output in memory" value={memory.agents_held_bytes} max={memory.agents_max_bytes}
        text={`${bytes(memory.agents_held_bytes)} / ${bytes(memory.agents_max_bytes)}`} />
      <Meter label="Memory of the server" value={memory.server_bytes} max={null} text={bytes(memory.server_bytes)} />
    </section>
  );
}

function Parts({ parts }: { readonly parts: readonly api.PartReadiness[] }) {
  return (
    <section class="card">
      <h2>Parts</h2>
      <ul class="rows">
        {parts.map(({ part, adapter, ok, detail }) => (
          <li key={`${part} ${adapter}`}>
            <Status value={ok ? 'ok' : 'ERROR'} label={adapter} /><span class="dim">{readableName(part)}</span>
            {detail !== '' && <p class="dim">{detail}</p>}
          </li>
        ))}
      </ul>
    </section>
  );
}

function Pools({ pools }: { readonly pools: readonly api.OverviewPool[] }) {
  return (
    <section class="card">
      <h2>Pools</h2>
      {pools.map(({ sandbox_spec_id: spec, target, running, starting, hits, misses, failure_detail: failure }) => (
        <div key={spec}>
          <Meter label={spec} value={running} max={target} isGoal
            text={`${running} of ${target} ready${starting > 0 ? `, ${starting} starting` : ''}`} />
          <p class="dim">{plural(hits, 'start')} used the pool, {misses} found it empty</p>
          {failure !== null && <p class="bad">{failure}</p>}
        </div>
      ))}
    </section>
  );
}

function Upcoming({ upcoming }: { readonly upcoming: readonly api.UpcomingAction[] }) {
  return (
    <section class="card">
      <h2>What the idle policy does next</h2>
      {upcoming.length === 0 && <p class="dim">Nothing is planned. The details of a sandbox, and its spec, show when it is paused.</p>}
      <ul class="rows">
        {upcoming.map(({ sandbox_id: id, action, at }) => (
          <li key={id}><span>{readableName(action)}</span><Link to={['sandboxes', id]} class="id">{id}</Link><Time at={at} /></li>
        ))}
      </ul>
    </section>
  );
}
