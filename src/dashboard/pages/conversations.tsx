import { useState } from 'preact/hooks';
import type { api } from '../../client/index.ts';
import { useDebounced, useResource } from '../live.ts';
import { route, setQuery } from '../route.ts';
import { canChange, currentSession } from '../session.ts';
import { texts } from '../texts.ts';
import { Button, Head, Link, More, Search, Status, Time } from '../ui/controls.tsx';
import { Empty, Loaded } from '../ui/feedback.tsx';
import { Page } from '../ui/page.tsx';
import { takePages } from '../ui/pages.ts';
import { conversationStatus } from './conversation.tsx';
import { NewConversation } from './new-conversation.tsx';

const kinds: ReadonlySet<api.Event['kind']> = new Set([
  'start_step', 'execution_changed', 'conversation_archived', 'conversation_deleted', 'sandbox_moved',
]);

export function ConversationsPage() {
  const { query } = route.value;
  const search = query.get('q') ?? '';
  const settled = useDebounced(search);
  const [pages, setPages] = useState(1);
  const resource = useResource((signal) => takePages(pages, (page) => currentSession().client.request('GET /api/v1/app-conversations', {
    query: { ...page, sort_order: 'UPDATED_AT_DESC', ...(settled !== '' && { title__contains: settled }) }, signal,
  })), [settled, pages], (event) => kinds.has(event.kind));
  const add = canChange() && <Button kind="primary" icon="plus" onClick={() => setQuery({ new: 'yes' })}>{texts.conversations.add}</Button>;
  return (
    <Page title={texts.nav.conversations} actions={add}>
      <div class="filters"><Search label={texts.conversations.search} value={search} onInput={(q) => setQuery({ q })} /></div>
      <Loaded resource={resource}>
        {({ items, hasMore }) => items.length === 0
          ? <Empty icon="conversations" title={settled === '' ? texts.conversations.none : texts.noMatch}>
            {settled === '' ? <><p>{texts.conversations.noneHint}</p>{add}</> : texts.noMatchHint}
          </Empty>
          : <><List items={items} /><More onMore={hasMore ? () => setPages(pages + 1) : null} /></>}
      </Loaded>
      {query.has('new') && (
        <NewConversation repository={query.get('repository') ?? ''} onClose={() => setQuery({ new: null, repository: null })} />
      )}
    </Page>
  );
}

function List({ items }: { readonly items: readonly api.AppConversation[] }) {
  return (
    <table>
      <Head columns={[[texts.conversations.title], [texts.status], [texts.conversations.repository, 'wide'], [texts.updated, 'right']]} />
      <tbody>
        {items.map((item) => (
          <tr key={item.id}>
            <td class="main"><Link to={['conversations', item.id]} class="row-link">{item.title ?? texts.conversations.untitled}</Link></td>
            <td><Status value={conversationStatus(item)} /></td>
            <td class="wide dim">{item.selected_repository}{item.selected_branch !== null && ` · ${item.selected_branch}`}</td>
            <td class="right dim"><Time at={item.updated_at} /></td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}
