import type { api } from '../../client/index.ts';
import { useDebounced } from '../live.ts';
import { route, setQuery } from '../route.ts';
import { canChange, currentSession } from '../session.ts';
import { Button, type Column, Link, Search, Status, Time } from '../ui/controls.tsx';
import { Empty, NoMatch } from '../ui/feedback.tsx';
import { Page } from '../ui/page.tsx';
import { PagedTable } from '../ui/paged-table.tsx';
import { conversationStatus } from './conversation.tsx';
import { NewConversation } from './new-conversation.tsx';

const kinds: ReadonlySet<api.Event['kind']> = new Set([
  'start_step', 'execution_changed', 'conversation_archived', 'conversation_deleted', 'sandbox_moved',
]);

const columns: readonly Column<api.AppConversation>[] = [
  ['Title', 'main', ({ id, title }) => (
    <Link to={['conversations', id]} class="row-link">{title ?? 'Untitled'}</Link>
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
      <div class="filters"><Search label="Search by title" value={search} onInput={(q) => setQuery({ q })} /></div>
      <PagedTable columns={columns} keyOf={({ id }) => id} filters={[settled]} isRelevant={({ kind }) => kinds.has(kind)}
        read={(page, signal) => currentSession().client.request('GET /api/v1/app-conversations', {
          query: { ...page, sort_order: 'UPDATED_AT_DESC', title__contains: settled || undefined }, signal,
        })}
        empty={settled === ''
          ? <Empty icon="conversations" title="No conversations yet">
            <p>A conversation is an agent that works on a repository in a sandbox of its own.</p>{add}
          </Empty>
          : <NoMatch icon="conversations" />} />
      {query.has('new') && (
        <NewConversation repository={query.get('repository') ?? ''} onClose={() => setQuery({ new: null, repository: null })} />
      )}
    </Page>
  );
}

