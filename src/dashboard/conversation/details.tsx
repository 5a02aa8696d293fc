import type { api } from '../../client/index.ts';
import { compactNumber } from '../format.ts';
import { texts } from '../texts.ts';
import { Facts, Link, ExternalLink, Status, Time } from '../ui/controls.tsx';
import { Icon } from '../ui/icons.tsx';
import { Meter } from '../ui/charts.tsx';
import type { Transcript } from './transcript.ts';

interface DetailsProps {
  readonly state: api.AppConversation;
  readonly transcript: Transcript;
}

/** The details next to the log. */
export function Details({ state, transcript: { plan, usage } }: DetailsProps) {
  const { sandbox_id: sandbox } = state;
  return (
    <>
      {plan !== null && <Plan plan={plan} />}
      {usage !== null && <Usage usage={usage} />}
      <section>
        <h2>{texts.details.title}</h2>
        <Facts facts={[
          [texts.details.repository, state.selected_repository],
          [texts.details.branch, state.selected_branch],
          [texts.details.sandbox, sandbox !== null && <Link to={['sandboxes', sandbox]} class="id">{sandbox}</Link>],
          [
            texts.details.sandboxStatus,
            state.archived_at === null ? <Status value={state.sandbox_status} /> : texts.details.sandboxDeleted,
          ],
          [texts.details.spec, state.sandbox_spec_id],
          [texts.details.owner, state.created_by_user_id],
          [texts.details.created, <Time at={state.created_at} />],
          ...state.pull_requests.map(({ url, number, branch }) => [branch, <ExternalLink url={url}>#{number}</ExternalLink>] as const),
        ]} />
      </section>
    </>
  );
}

const marks = { pending: 'close', in_progress: 'chevron', completed: 'check' } as const;

function Plan({ plan: { entries } }: { readonly plan: api.PlanEventData }) {
  const done = entries.filter(({ status }) => status === 'completed').length;
  return (
    <section>
      <h2>{texts.details.plan} <small>{done}/{entries.length}</small></h2>
      <ul class="plan">
        {entries.map(({ content, status }, index) => (
          <li key={index} class={status}>
            {status === 'pending' ? <i class="open-mark" /> : <Icon name={marks[status]} />}<span>{content}</span>
            <span class="hidden">{texts.details.planStatus[status]}</span>
          </li>
        ))}
      </ul>
    </section>
  );
}

function Usage({ usage: { used_tokens: used, context_tokens: size, cost } }: { readonly usage: api.UsageEventData }) {
  return (
    <section>
      <h2>{texts.details.usage}</h2>
      <Meter label={texts.details.context} value={used} max={size} text={texts.details.tokens(compactNumber(used), compactNumber(size))} />
      {cost !== null && <Facts facts={[[texts.details.cost, `${cost.amount.toFixed(2)} ${cost.currency}`]]} />}
    </section>
  );
}
