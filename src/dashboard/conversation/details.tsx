import type { api } from '../../client/index.ts';
import { compactNumber } from '../format.ts';
import { ExternalLink, Facts, Link, Meter, Status, Time } from '../ui/controls.tsx';
import { Icon } from '../ui/icons.tsx';
import type { Transcript } from './transcript.ts';

export function Details(props: { readonly state: api.AppConversation; readonly transcript: Transcript }) {
  const { state, transcript: { plan, usage } } = props;
  const { sandbox_id: sandbox } = state;
  return (
    <>
      {plan !== null && <Plan plan={plan} />}
      {usage !== null && <Usage usage={usage} />}
      <section>
        <h2>Details</h2>
        <Facts facts={[
          ['Repository', state.selected_repository],
          ['Branch', state.selected_branch],
          ['Sandbox', sandbox !== null && <Link to={['sandboxes', sandbox]} class="id">{sandbox}</Link>],
          [
            'Sandbox status',
            state.archived_at !== null && state.sandbox_status === 'MISSING' ? 'Deleted' : <Status value={state.sandbox_status} />,
          ],
          ['Spec', state.sandbox_spec_id],
          ['Owner', state.created_by_user_id],
          ['Created', <Time at={state.created_at} />],
          ...state.pull_requests.map(({ url, number, branch }) => [branch, <ExternalLink url={url}>#{number}</ExternalLink>] as const),
        ]} />
      </section>
    </>
  );
}

const planStatuses = { pending: 'to do', in_progress: 'in progress', completed: 'done' } as const;
const marks = { in_progress: 'chevron', completed: 'check' } as const;

function Plan({ plan: { entries } }: { readonly plan: api.PlanEventData }) {
  const done = entries.filter(({ status }) => status === 'completed').length;
  return (
    <section>
      <h2>Plan <small>{done}/{entries.length}</small></h2>
      <ul class="plan">
        {entries.map(({ content, status }, index) => (
          <li key={index} class={status}>
            {status === 'pending' ? <i class="open-mark" /> : <Icon name={marks[status]} />}<span>{content}</span>
            <span class="hidden">{planStatuses[status]}</span>
          </li>
        ))}
      </ul>
    </section>
  );
}

function Usage({ usage: { used_tokens: used, context_tokens: size, cost } }: { readonly usage: api.UsageEventData }) {
  return (
    <section>
      <h2>Usage</h2>
      <Meter label="Context" value={used} max={size} text={`${compactNumber(used)} of ${compactNumber(size)} tokens`} />
      {cost !== null && <Facts facts={[['Cost', `${cost.amount.toFixed(2)} ${cost.currency}`]]} />}
    </section>
  );
}
