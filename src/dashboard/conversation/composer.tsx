import { useRef } from 'preact/hooks';
import type { Conversation } from '../../client/index.ts';
import { draftOf, useDraft, withoutSent } from '../drafts.ts';
import { plural } from '../format.ts';
import { canChange } from '../session.ts';
import { ActionButton, useAction } from '../ui/actions.tsx';
import { Button, isComposing } from '../ui/controls.tsx';
import type { MessageEntry } from './transcript.ts';

interface ComposerProps {
  readonly conversation: Conversation;
  /** The messages that the agent has not received yet. */
  readonly waiting: readonly MessageEntry[];
  readonly isRunning: boolean;
}

export function Composer(props: ComposerProps) {
  return <><Waiting {...props} /><Form {...props} /></>;
}

/** Shows the messages that wait. The text of a withdrawn one can be changed and sent again. */
function Waiting({ conversation, waiting }: ComposerProps) {
  const [, change] = useDraft(conversation.id);
  if (waiting.length === 0) return null;
  return (
    <ul class="waiting" aria-label="Queue" tabIndex={0}>
      {waiting.map(({ key, text }) => (
        <li key={key}>
          <span class="tag">Queued</span>
          <p class="plain">{text}</p>
          {canChange() && <ActionButton kind="quiet" icon="close" label="Withdraw" onAct={async () => {
            await conversation.cancel({ messageId: key });
            change((present) => present ?? draftOf(text));
          }} />}
        </li>
      ))}
    </ul>
  );
}

function Form({ conversation, waiting: { length: queued }, isRunning }: ComposerProps) {
  const [draft, change] = useDraft(conversation.id);
  const text = draft?.text ?? '';
  const [isBusy, run] = useAction();
  const hasRun = useRef(false);
  const { archived_at: archivedAt, start_status: startStatus } = conversation.state;
  const why = archivedAt !== null ? 'This conversation is archived: it takes no more messages.'
    : startStatus === 'ERROR' ? 'This conversation did not start. Fix the cause that is shown above, then start a new conversation.'
      : canChange() ? null : 'Your key can only read.';
  if (why !== null) return <p class="composer-off">{why}</p>;
  const isWaiting = conversation.state.execution_status === 'waiting_for_permission';
  const messages = plural(queued, 'message');
  hasRun.current ||= isRunning;
  const state = isRunning ? `The agent ${isWaiting ? 'waits for your answer' : 'works'}${queued > 0 ? ` · ${messages} queued` : ''}`
    : queued > 0 ? `${messages} ${queued === 1 ? 'waits' : 'wait'}` : hasRun.current ? 'The agent has finished.' : '';
  const send = () => run(async () => {
    if (text.trim() === '') return;
    await conversation.send(text);
    change((present) => withoutSent(present, text));
  });
  return (
    <form class="composer" onSubmit={(event) => {
      event.preventDefault();
      void send();
    }}>
      <textarea rows={Math.min(10, text.split('\n').length + 1)} value={text}
        placeholder="Message the agent. Enter sends, Shift Enter makes a new line." aria-label="Message"
        onInput={({ currentTarget: { value } }) => change(() => draftOf(value))}
        onKeyDown={(event) => {
          if (event.key !== 'Enter' || event.shiftKey || isComposing(event)) return;
          event.preventDefault();
          void send();
        }} />
      <footer>
        <span class="dim" role="status">{state}</span>
        {isRunning && <ActionButton icon="stop" onAct={() => conversation.cancel()}>Stop</ActionButton>}
        <Button type="submit" kind="primary" icon="send" disabled={isBusy || text.trim() === ''}>
          {isRunning ? 'Queue' : 'Send'}
        </Button>
      </footer>
    </form>
  );
}
