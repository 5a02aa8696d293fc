import { useId } from 'preact/hooks';
import { useDebounced, useResource } from '../live.ts';
import { currentSession } from '../session.ts';
import { texts } from '../texts.ts';

interface RepositoryInputProps {
  readonly value: string;
  readonly onInput: (value: string) => void;
}

/** The name of a repository, with those that the git hosts find. */
export function RepositoryInput({ value, onInput }: RepositoryInputProps) {
  const list = useId();
  const query = useDebounced(value);
  const found = useResource(
    (signal) => currentSession().client.request('GET /api/v1/repositories/search', { query: { query, limit: 30 }, signal }), [query],
  );
  return (
    <>
      <input list={list} value={value} placeholder="owner/name" aria-label={texts.newConversation.repository} spellcheck={false} autocomplete="off"
        onInput={(event) => onInput(event.currentTarget.value.trim())} />
      <datalist id={list}>{found.data?.items.map(({ name }) => <option key={name} value={name} />)}</datalist>
    </>
  );
}
