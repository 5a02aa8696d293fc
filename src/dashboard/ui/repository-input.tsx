import { useId } from 'preact/hooks';
import type { api } from '../../client/index.ts';
import { type Resource, useDebounced, useResource } from '../live.ts';
import { currentSession } from '../session.ts';

/** Finds repositories of the git hosts by a part of the name. */
export function useRepositories(query: string): Resource<readonly api.Repository[]> {
  return useResource(async (signal) => {
    if (query === '') return [];
    return (await currentSession().client.request('GET /api/v1/repositories/search', { query: { query, limit: 50 }, signal })).items;
  }, [query]);
}

interface RepositoryInputProps {
  readonly value: string;
  readonly onInput: (value: string) => void;
}

/** An input for a repository's name, with suggestions from the git hosts. */
export function RepositoryInput({ value, onInput }: RepositoryInputProps) {
  const list = useId();
  const query = useDebounced(value);
  const found = useRepositories(query);
  return (
    <>
      <input list={list} value={value} placeholder="owner/name" aria-label="Repository"
        spellcheck={false} autocomplete="off" onInput={(event) => onInput(event.currentTarget.value.trim())} />
      <datalist id={list}>{found.data?.map(({ name }) => <option key={name} value={name} />)}</datalist>
    </>
  );
}
