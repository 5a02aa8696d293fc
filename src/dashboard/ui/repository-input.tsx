import { useDebounced, useResource } from '../live-resources.ts';
import { currentSession } from '../session.ts';
import { SuggestedInput } from './controls.tsx';

interface RepositoryInputProps {
  readonly value: string;
  readonly onInput: (value: string) => void;
}

/** An input for a repository's name, with suggestions from the git hosts for a part of the name. */
export function RepositoryInput({ value, onInput }: RepositoryInputProps) {
  const query = useDebounced(value);
  const found = useResource(async (signal) => {
    if (query === '') return null;
    return await currentSession().client.request('GET /api/v1/repositories/search', { query: { query, limit: 50 }, signal });
  }, [query]);
  const failure = found.error?.message ?? found.data?.failures[0]?.detail;
  return (
    <>
      <SuggestedInput label="Repository" value={value} placeholder="owner/name" onInput={onInput}
        suggestions={(found.data?.items ?? []).map(({ name }) => name)} />
      {failure !== undefined && <small role="status">{failure}</small>}
    </>
  );
}
