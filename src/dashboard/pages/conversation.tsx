import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import type { api, Conversation } from '../../client/index.ts';
import { Changes } from '../conversation/changes.tsx';
import { Composer } from '../conversation/composer.tsx';
import { Details } from '../conversation/details.tsx';
import { EntryRow } from '../conversation/entries.tsx';
import { TranscriptSource } from '../conversation/transcript-source.ts';
import { VirtualLog } from '../conversation/virtual-log.tsx';
import { shownTitle } from '../format.ts';
import { useResource } from '../live-resources.ts';
import { navigate, route } from '../route.ts';
import { canChange, currentSession } from '../session.ts';
import { toastFailure } from '../ui/actions.tsx';
import { Button, Field, Status, Tabs } from '../ui/controls.tsx';
import { ask, FormDialog } from '../ui/dialog.tsx';
import { LoadedPage, NotUpToDate, Page } from '../ui/page.tsx';

export function ConversationPage({ id }: { readonly id: string }) {
  const { client } = currentSession();
  const resource = useResource((signal) => client.conversations.get(id, { signal }), [id]);
  return (
    <LoadedPage resource={resource} title={id} isId back={['Conversations', ['conversations']]}>
      {(conversation) => <LoadedConversation conversation={conversation} onState={resource.reload} />}
    </LoadedPage>
  );
}

interface LoadedConversationProps {
  readonly conversation: Conversation;
  readonly onState: () => void;
}

export function conversationStatus(state: Conversation['state']): string {
  const { start_status: start, execution_status: execution, sandbox_status: sandbox } = state;
  if (state.archived_at !== null) return 'archived';
  if (start !== 'READY') return start;
  if (execution !== null && execution !== 'idle') return execution;
  return sandbox === 'RUNNING' ? 'idle' : sandbox;
}

function LoadedConversation({ conversation, onState }: LoadedConversationProps) {
  const { state } = conversation;
  const source = useMemo(() => new TranscriptSource(state.id, onState), []);
  useEffect(() => source.follow(), []);
  const tab = route.value.query.get('tab') ?? 'log';
  const { transcript } = source.log.value;
  return (
    <Page title={shownTitle(state.title)} back={['Conversations', ['conversations']]} isFull
      meta={<Status value={conversationStatus(state)} />} actions={<Actions conversation={conversation} onState={onState} />}>
      {state.status_detail !== null && <p class={state.start_status === 'ERROR' ? 'banner bad' : 'banner'}>{state.status_detail}</p>}
      <Tabs current={tab} tabs={[
        ['log', 'Conversation'],
        ['changes', <>Changes{transcript.workTree !== null && <small>{transcript.workTree.files}</small>}</>],
        ['details', 'Details'],
      ]} />
      {tab === 'changes' && <div class="scroll"><Changes conversation={conversation} workTree={transcript.workTree} /></div>}
      {tab === 'details' && <div class="scroll side narrow"><Details state={state} transcript={transcript} /></div>}
      {tab === 'log' && (
        <div class="talk">
          <Log conversation={conversation} source={source} />
          <aside class="side"><Details state={state} transcript={transcript} /></aside>
        </div>
      )}
    </Page>
  );
}

/** The execution statuses of a conversation with an unfinished turn. */
const turnStatuses: ReadonlySet<api.AppConversation['execution_status']> = new Set(['running', 'waiting_for_permission', 'frozen']);

/** How often older events are read for the message of the turn. There is none if the agent began to work by itself. */
const maxReadings = 10;

function Log({ conversation, source }: { readonly conversation: Conversation; readonly source: TranscriptSource }) {
  const unfolded = useMemo(() => new Set<string>(), []);
  const { transcript, rows, waiting } = source.log.value;
  const firstId = source.firstId.value;
  const isRunning = turnStatuses.has(conversation.state.execution_status);
  const readOlder = () => void source.readOlder().catch(toastFailure);
  const readings = useRef(0);
  useEffect(() => {
    if (!isRunning || firstId === 0 || transcript.hasTurn || readings.current === maxReadings) return;
    readings.current += 1;
    readOlder();
  }, [isRunning, firstId]);
  return (
    <div class="talk-main">
      <NotUpToDate error={source.error.value} />
      <VirtualLog count={rows.length} label="Conversation" keyOf={(index) => rows[index]?.key ?? ''}
        firstId={firstId} onStart={readOlder}
        rowOf={(index) => {
          const entry = rows[index];
          return entry && <EntryRow entry={entry} transcript={transcript} conversation={conversation} unfolded={unfolded} />;
        }} />
      <Composer conversation={conversation} waiting={waiting} isRunning={isRunning} />
    </div>
  );
}

function Actions({ conversation, onState }: LoadedConversationProps) {
  const [isRenaming, setRenaming] = useState(false);
  const { id, state } = conversation;
  const { client } = currentSession();
  if (!canChange()) return null;
  const change = async (body: api.AppConversationUpdateRequest) => {
    await client.request('PATCH /api/v1/app-conversations/{id}', { path: { id }, body });
    onState();
  };
  return (
    <>
      <Button kind="quiet" onClick={() => setRenaming(true)}>Rename</Button>
      {state.archived_at === null && <Button kind="quiet" onClick={() => ask({
        title: 'Archive this conversation?', submit: 'Archive',
        text: 'Its agent ends. Its messages and changes are kept. Then its sandbox is deleted with its files, unless another conversation '
          + 'uses it.',
        onSubmit: async () => {
          await conversation.archive();
          onState();
        },
      })}>Archive</Button>}
      <Button kind="quiet" icon="trash" label="Delete" onClick={() => ask({
        title: 'Delete this conversation?', submit: 'Delete',
        text: 'Its messages are lost. Its sandbox is deleted with its files, unless another conversation uses it.',
        onSubmit: async () => {
          await conversation.delete();
          return () => navigate(['conversations']);
        },
      })} />
      {isRenaming && (
        <FormDialog title="Rename" submit="Save" onClose={() => setRenaming(false)} onSubmit={({ title = null }) => change({ title })}>
          <Field label="Title"><input name="title" defaultValue={state.title ?? ''} /></Field>
        </FormDialog>
      )}
    </>
  );
}
