import { useEffect } from 'preact/hooks';
import type { api } from '../../client/index.ts';
import { bytes, milliseconds, orNone, relativeTime, readableName } from '../format.ts';
import { useResource } from '../live.ts';
import { currentSession } from '../session.ts';
import { texts } from '../texts.ts';
import { Link, Status, Time } from '../ui/controls.tsx';
import { Meter } from '../ui/charts.tsx';
import { Loaded } from '../ui/feedback.tsx';
import { Page } from '../ui/page.tsx';

const refreshMs = 5000;
const kinds: ReadonlySet<api.Event['kind']> = new Set(['sandbox_moved', 'start_step', 'execution_changed']);

/** The start page for operators. */
export function OverviewPage() {
  const { client, me } = currentSession();
  const resource = useResource((signal) => client.request('GET /api/v1/overview', { signal }), [], ({ kind }) => kinds.has(kind));
  useEffect(() => {
    const timer = setInterval(() => document.hidden || resource.reload(), refreshMs);
    return () => clearInterval(timer);
  }, []);
  return (
    <Page title={texts.nav.overview} meta={me.access !== 'admin' && <span class="tag">{texts.overview.own}</span>}>
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
  const starting = status.STARTING + status.RESUMING;
  const { running, waiting_for_permission: waiting } = conversations.by_execution_status;
  const counts = [
    ['RUNNING', texts.overview.running, status.RUNNING, ['sandboxes'], { status: 'RUNNING' }],
    ['STARTING', texts.overview.starting, starting, ['sandboxes'], { status: 'STARTING' }],
    ['PAUSED', texts.overview.resting, status.PAUSED + status.PAUSING, ['sandboxes'], { status: 'PAUSED' }],
    ['ERROR', texts.overview.failed, status.ERROR + status.MISSING, ['sandboxes'], { status: 'ERROR' }],
    ['running', texts.overview.turns, running, ['conversations'], {}],
    ['waiting_for_permission', texts.overview.waiting, waiting, ['conversations'], {}],
  ] as const;
  return (
    <div class="counts">
      {counts.map(([value, label, count, path, query]) => (
        <Link key={label} to={path} query={query} class={count === 0 ? 'none' : ''}>
          <b>{count}</b><Status value={value} label={label} />
        </Link>
      ))}
      {quarantine > 0 && (
        <Link to={['sandboxes']} class=""><b>{quarantine}</b><Status value="ERROR" label={texts.overview.quarantine} /></Link>
      )}
    </div>
  );
}

function Problems({ problems }: { readonly problems: readonly api.OverviewProblem[] }) {
  if (problems.length === 0) return <p class="banner good">{texts.overview.noProblems}</p>;
  return (
    <section class="card">
      <h2>{texts.overview.problems} <small>{problems.length}</small></h2>
      <ul class="rows">
        {problems.map(({ kind, id, title, status, status_detail: detail, sandbox_spec_id: spec, since }) => (
          <li key={id}>
            <Status value={status} />
            <Link to={[kind === 'sandbox' ? 'sandboxes' : 'conversations', id]} class={title === null ? 'id' : ''}>{title ?? id}</Link>
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
      <h2>{texts.overview.starts} <small>{texts.overview.since(relativeTime(since))}</small></h2>
      <div class="numbers">
        <figure><figcaption>p50</figcaption><b>{orNone(p50, milliseconds)}</b></figure>
        <figure><figcaption>p95</figcaption><b>{orNone(p95, milliseconds)}</b></figure>
        <figure><figcaption>{texts.overview.succeeded}</figcaption><b>{succeeded}</b></figure>
        <figure><figcaption>{texts.overview.failedStarts}</figcaption><b class={failed > 0 ? 'bad' : ''}>{failed}</b></figure>
        <figure><figcaption>{texts.overview.fromPool}</figcaption><b>{fromPool}</b></figure>
      </div>
    </section>
  );
}

function Limits({ limits }: { readonly limits: readonly api.OverviewLimit[] }) {
  return (
    <section class="card">
      <h2>{texts.overview.limits}</h2>
      {limits.map(({ limit, max, used, user_id: user }) => {
        const label = `${readableName(limit)}${user === null ? '' : ` (${user})`}`;
        return (
          <Meter key={limit} label={label} value={used} max={max} text={max === null ? texts.overview.noLimit(used) : `${used} / ${max}`} />
        );
      })}
    </section>
  );
}

function Machine({ deployment: { disk, memory } }: { readonly deployment: api.OverviewDeployment }) {
  const usedMemory = memory.machine_total_bytes - memory.machine_free_bytes;
  return (
    <section class="card">
      <h2>{texts.overview.machine}</h2>
      {disk !== null && (
        <Meter label={texts.overview.disk(disk.limit_percent)} value={disk.used_percent} max={100}
          text={texts.overview.free(bytes(disk.free_bytes), bytes(disk.total_bytes))} />
      )}
      <Meter label={texts.overview.memory} value={usedMemory} max={memory.machine_total_bytes}
        text={texts.overview.free(bytes(memory.machine_free_bytes), bytes(memory.machine_total_bytes))} />
      <Meter label={texts.overview.agents} value={memory.agents_held_bytes} max={memory.agents_max_bytes}
        text={`${bytes(memory.agents_held_bytes)} / ${bytes(memory.agents_max_bytes)}`} />
      <Meter label={texts.overview.server} value={memory.server_bytes} max={null} text={bytes(memory.server_bytes)} />
    </section>
  );
}

function Parts({ parts }: { readonly parts: readonly api.PartReadiness[] }) {
  return (
    <section class="card">
      <h2>{texts.overview.parts}</h2>
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
      <h2>{texts.overview.pools}</h2>
      {pools.map(({ sandbox_spec_id: spec, target, running, starting, hits, misses, failure_detail: failure }) => (
        <div key={spec}>
          <Meter label={spec} value={running} max={target} text={texts.overview.pool(running, target, starting)} />
          <p class="dim">{texts.overview.hits(hits, misses)}</p>
          {failure !== null && <p class="bad">{failure}</p>}
        </div>
      ))}
    </section>
  );
}

function Upcoming({ upcoming }: { readonly upcoming: readonly api.UpcomingAction[] }) {
  return (
    <section class="card">
      <h2>{texts.overview.upcoming}</h2>
      {upcoming.length === 0 && <p class="dim">{texts.overview.nothingUpcoming}</p>}
      <ul class="rows">
        {upcoming.map(({ sandbox_id: id, action, at }) => (
          <li key={id}><span>{texts.overview.actions[action]}</span><Link to={['sandboxes', id]} class="id">{id}</Link><Time at={at} /></li>
        ))}
      </ul>
    </section>
  );
}
