import { useId } from 'preact/hooks';
import { useDebounced, useResource } from '../live-resources.ts';
import { currentSession } from '../session.ts';

interface RepositoryInputProps {
  readonly value: string;
  readonly onInput: (value: string) => void;
}

/** An input for a repository's name, with suggestions from the git hosts for a part of the name. */
export function RepositoryInput({ value, onInput }: RepositoryInputProps) {
  const list = useId();
  const query = useDebounced(value);
  const found = useResource(async (signal) => {
    if (query === '') return null;
    return await currentSession().client.request('GET /api/v1/repositories/search', { query: { query, limit: 50 }, signal });
  }, [query]);
  const failure = found.error?.message ?? found.data?.failures[0]?.detail;
  return (
    <>
      <input list={list} value={value} placeholder="owner/name" aria-label="Repository"
        spellcheck={false} autocomplete="off" onInput={(event) => onInput(event.currentTarget.value.trim())} />
      <datalist id={list}>{found.data?.items.map(({ name }) => <option key={name} value={name} />)}</datalist>
      {failure !== undefined && <small role="status">{failure}</small>}
    </>
  );
}
