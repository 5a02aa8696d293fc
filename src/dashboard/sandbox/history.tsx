import type { api } from '../../client/index.ts';
import { sandboxStatusName } from '../format.ts';
import { useResource } from '../live.ts';
import { currentSession } from '../session.ts';
import { Status, Time } from '../ui/controls.tsx';
import { Loaded } from '../ui/feedback.tsx';

export const actorNames: Readonly<Record<api.Event['actor'], string>> = {
  user: 'by a user', agent: 'by the agent', skep: 'by Skep', runtime: 'noticed in the runtime',
};

/** The status changes of a sandbox with their reasons. */
export function History({ sandbox }: { readonly sandbox: api.Sandbox }) {
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
            {moves.map(({ id, at, data, actor, reason }) => (
              <li key={id}>
                <Status value={data.to ?? 'deleted'} label={sandboxStatusName(data.to ?? 'deleted', data.pause_kind)} />
                <span class="dim">{actorNames[actor]}</span>
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
