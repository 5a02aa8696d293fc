import { useState } from 'preact/hooks';
import type { Conversation } from '../../client/index.ts';
import { canChange, drafts } from '../session.ts';
import { texts } from '../texts.ts';
import { ActionButton, Button } from '../ui/controls.tsx';
import { useAction } from '../ui/actions.ts';

interface ComposerProps {
  readonly conversation: Conversation;
  /** The number of messages that the agent has not received yet. */
  readonly queued: number;
  readonly isRunning: boolean;
}

export function Composer({ conversation, queued, isRunning }: ComposerProps) {
  const [text, setText] = useState(drafts.get(conversation.id) ?? '');
  const [isBusy, run] = useAction();
  const { archived_at: archivedAt, start_status: startStatus } = conversation.state;
  const why = archivedAt !== null ? texts.composer.archived : startStatus === 'ERROR' ? texts.composer.failed
    : canChange() ? null : texts.composer.readOnly;
  if (why !== null) return <p class="composer-off">{why}</p>;
  const isWaiting = conversation.state.execution_status === 'waiting_for_permission';
  const state = isRunning ? texts.composer.running(isWaiting, queued) : queued > 0 ? texts.composer.queued(queued) : '';
  const write = (draft: string) => {
    drafts.set(conversation.id, draft);
    setText(draft);
  };
  const send = () => run(async () => {
    if (text.trim() === '') return;
    await conversation.send(text);
    write('');
  });
  return (
    <form class="composer" onSubmit={(event) => {
      event.preventDefault();
      void send();
    }}>
      <textarea rows={Math.min(10, text.split('\n').length + 1)} value={text}
        placeholder={texts.composer.placeholder} aria-label={texts.composer.label}
        onInput={(event) => write(event.currentTarget.value)}
        onKeyDown={(event) => {
          if (event.key !== 'Enter' || event.shiftKey || event.isComposing) return;
          event.preventDefault();
          void send();
        }} />
      <footer>
        <span class="dim" role="status">{state}</span>
        {isRunning && <ActionButton icon="stop" onAct={() => conversation.cancel()}>{texts.composer.stop}</ActionButton>}
        <Button type="submit" kind="primary" icon="send" disabled={isBusy || text.trim() === ''}>
          {isRunning ? texts.composer.queue : texts.composer.send}
        </Button>
      </footer>
    </form>
  );
}
