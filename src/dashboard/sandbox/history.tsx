import type { api } from '../../client/index.ts';
import { sandboxMoves } from '../event-log.ts';
import { words } from '../format.ts';
import { useResource } from '../live.ts';
import { texts } from '../texts.ts';
import { Status, Time } from '../ui/controls.tsx';
import { Loaded } from '../ui/feedback.tsx';

function stateName({ to, pause_kind: kind }: api.SandboxMovedEventData): string {
  return to === 'PAUSED' && kind !== null ? texts.sandbox.paused[kind] : words(to ?? 'deleted');
}

/** The states of a sandbox, and why it came to them. */
export function History({ sandbox }: { readonly sandbox: api.Sandbox }) {
  const resource = useResource((signal) => sandboxMoves(sandbox.id, signal), [sandbox.id, sandbox.updated_at]);
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
