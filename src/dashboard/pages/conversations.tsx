import { useState } from 'preact/hooks';
import type { api } from '../../client/index.ts';
import { draftOf, useDraft, withoutSent } from '../drafts.ts';
import { shownTitle } from '../format.ts';
import { useDebounced, useResource } from '../live-resources.ts';
import { navigate, route, setQuery } from '../route.ts';
import { canChange, currentSession } from '../session.ts';
import { defaultSpecLabel, useSpecs } from '../specs.ts';
import { Button, type Column, Field, Link, Select, Status, SuggestedInput, Time } from '../ui/controls.tsx';
import { type FormTexts, FormDialog } from '../ui/dialog.tsx';
import { Empty, NoMatch, Page } from '../ui/page.tsx';
import { PagedTable } from '../ui/paged-table.tsx';
import { RepositoryInput } from '../ui/repository-input.tsx';
import { conversationStatus } from './conversation.tsx';

const kinds: ReadonlySet<api.Event['kind']> = new Set([
  'start_step', 'execution_changed', 'conversation_archived', 'conversation_deleted', 'sandbox_moved',
]);

const columns: readonly Column<api.AppConversation>[] = [
  ['Title', 'main', ({ id, title }) => (
    <Link to={['conversations', id]} class="row-link">{shownTitle(title)}</Link>
  )],
  ['Status', '', (item) => <Status value={conversationStatus(item)} />],
  ['Repository', 'wide dim', ({ selected_repository: name, selected_branch: branch }) => (
    <>{name}{branch !== null && ` · ${branch}`}</>
  )],
  ['Updated', 'right dim', ({ updated_at: at }) => <Time at={at} />],
];

export function ConversationsPage() {
  const { query } = route.value;
  const search = query.get('q') ?? '';
  const settled = useDebounced(search);
  const add = canChange() && <Button kind="primary" icon="plus" onClick={() => setQuery({ new: 'yes' })}>New conversation</Button>;
  return (
    <Page title="Conversations" actions={add}>
      <div class="filters">
        <input type="search" placeholder="Search by title" aria-label="Search by title" value={search}
          onInput={(event) => setQuery({ q: event.currentTarget.value })} />
      </div>
      <PagedTable columns={columns} keyOf={({ id }) => id} filters={[settled]} isRelevant={({ kind }) => kinds.has(kind)}
        read={(page, signal) => currentSession().client.request('GET /api/v1/app-conversations', {
          query: { ...page, sort_order: 'UPDATED_AT_DESC', title__contains: settled || undefined }, signal,
        })}
        empty={settled === ''
          ? <Empty icon="conversations" title="No conversations yet">
            <p>A conversation is an agent that works on a repository in a sandbox of its own.</p>{add}
          </Empty>
          : <NoMatch icon="conversations" />} />
      {canChange() && query.has('new') && (
        <NewConversation repository={query.get('repository') ?? ''} onClose={() => setQuery({ new: null, repository: null })} />
      )}
    </Page>
  );
}

const policies = [['', 'As the spec says'], ['ask', 'Ask me'], ['allow', 'Allow it'], ['deny', 'Refuse it']] as const;

interface NewConversationProps {
  /** The repository that is chosen first. */
  readonly repository: string;
  readonly onClose: () => void;
}

/** More branches are not suggested, because a hundred are one request. */
const maxBranches = 500;

async function branchesOf(repository: string, signal: AbortSignal): Promise<string[]> {
  const names: string[] = [];
  if (repository === '') return names;
  const input = { path: { repository_name: repository }, query: { limit: 100 }, signal };
  for await (const { name } of currentSession().client.items('GET /api/v1/repositories/{repository_name}/branches', input)) {
    if (names.push(name) === maxBranches) break;
  }
  return names;
}

/** Returns the beginning of the first line. Counts code points, because half a surrogate pair is refused. */
function titleOf(message: string): string {
  return Array.from(message.split('\n', 1)[0] ?? '').slice(0, 80).join('');
}

function NewConversation({ repository: chosen, onClose }: NewConversationProps) {
  const { client } = currentSession();
  const [draft, change] = useDraft('new conversation');
  const [repository, setRepository] = useState(chosen);
  const settled = useDebounced(repository);
  const branches = useResource((signal) => branchesOf(settled, signal), [settled]);
  const specs = useSpecs().data ?? [];
  const start = async ({ branch, spec, policy, message }: FormTexts) => {
    const conversation = await client.conversations.start({
      selected_repository: repository || undefined,
      selected_branch: branch,
      sandbox_spec_id: spec,
      permission_policy: policies.find(([one]) => one === policy)?.[0] || null,
      ...(message !== undefined && {
        title: titleOf(message), initial_message: { content: [{ type: 'text', text: message }] },
      }),
    });
    change((present) => withoutSent(present, draft?.text ?? ''));
    return () => navigate(['conversations', conversation.id]);
  };
  return (
    <FormDialog title="New conversation" submit="Start" onClose={onClose} onSubmit={start} class="large">
      <Field label="What should the agent do?">
        <textarea name="message" rows={4} autofocus placeholder="Fix the failing test in src/checkout …" value={draft?.text ?? ''}
          onInput={({ currentTarget: { value } }) => change(() => draftOf(value))} />
      </Field>
      <div class="pair">
        <Field label="Repository" hint={branches.error?.message}>
          <RepositoryInput value={repository} onInput={setRepository} />
        </Field>
        <Field label="Branch">
          <SuggestedInput name="branch" placeholder="Default branch" suggestions={branches.data ?? []} />
        </Field>
      </div>
      <div class="pair">
        <Field label="Sandbox spec">
          <Select name="spec" options={[['', defaultSpecLabel(specs)], ...specs.map(({ id }) => [id, id] as const)]} />
        </Field>
        <Field label="When the agent asks for permission"><Select name="policy" options={policies} /></Field>
      </div>
    </FormDialog>
  );
}
