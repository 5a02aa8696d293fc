import type { api } from '../../client/index.ts';
import { readableName } from '../format.ts';
import { useResource } from '../live.ts';
import { currentSession } from '../session.ts';
import { texts } from '../texts.ts';
import { Status, Time } from '../ui/controls.tsx';
import { Loaded } from '../ui/feedback.tsx';

function stateName({ to, pause_kind: kind }: api.SandboxMovedEventData): string {
  return to === 'PAUSED' && kind !== null ? texts.sandbox.paused[kind] : readableName(to ?? 'deleted');
}

/** The status changes of a sandbox with their reasons. */
export function History({ sandbox }: { readonly sandbox: api.Sandbox }) {
  const resource = useResource(async (signal) => {
    const query = { sandbox_id__eq: sandbox.id, kinds: ['sandbox_moved'], limit: 100 } as const;
    const events = await Array.fromAsync(currentSession().client.items('GET /api/v1/events', { query, signal }));
    return events.filter((event) => event.kind === 'sandbox_moved').toReversed();
  }, [sandbox.id, sandbox.updated_at]);
  return (
    <section class="card">
      <h2>{texts.sandbox.history}</h2>
      <Loaded resource={resource} rows={3}>
        {(moves) => (
          <ol class="history">
            {moves.map(({ id, at, data, actor, reason }) => (
              <li key={id}>
                <Status value={data.to ?? 'deleted'} label={stateName(data)} />
                <span class="dim">{texts.sandbox.actors[actor]}</span>
                <Time at={at} />
                {reason !== null && <p>{reason}</p>}
              </li>
            ))}
            {moves.at(-1)?.data.from !== null && <li class="dim">{texts.sandbox.historyCut}</li>}
          </ol>
        )}
      </Loaded>
    </section>
  );
}
