import type { DirectoryListing, FileQuery, GitProvider, GitRemote } from '../../../ports/git-provider.ts';
import { checkGitHub, failedCheck } from './check.ts';
import { createClient } from './client.ts';
import { knowledgeScope } from './credential.ts';
import { endpointOf } from './endpoint.ts';
import { isOutage } from '../../shared/provider-failures.ts';
import { failed, providerName, timedOut } from './failures.ts';
import { createSingleFlight } from '../../shared/single-flight.ts';
import { createGitToken } from './git-token.ts';
import { createGraphql } from './graphql.ts';
import { createGraphqlSource } from './graphql-source.ts';
import { createKnown } from './known.ts';
import { createListings, type Listed, type ListRequest } from './listings.ts';
import { parseName } from './name.ts';
import { resolveOptions, type GitHubOptions, type ResolvedOptions } from './options.ts';
import { createRestSource } from './rest-source.ts';
import { createRestTrees } from './rest-tree.ts';
import type { Source } from './source.ts';
import { basicAuthorization, hostedRemote } from '../git-host-options.ts';
import { startTimeout, withTimeout } from '../../shared/timeout.ts';
import { createTransport, type Transport } from './transport.ts';
import { createWish } from './wish.ts';

/**
 * Serves the repositories of github.com or of a GitHub Enterprise Server. `find` and `listFiles` follow a repository
 * that was renamed.
 */
export function createGitHubProvider(options: GitHubOptions): GitProvider {
  const resolved = resolveOptions(options);
  const { clock, timeoutMs, serveStaleForMs } = resolved;
  const client = createClient(resolved);
  const transportOptions = { ...resolved, baseUrl: resolved.url };
  const transport = createTransport(client, transportOptions);
  const gitToken = createGitToken(client, transportOptions);
  const endpoint = endpointOf(resolved.url);
  const source = sourceOf(resolved, transport);
  const listings = createListings({
    transport,
    source,
    known: createKnown(resolved.knowledge, knowledgeScope(resolved)),
    now: () => clock.now(),
    notesConfirmations: serveStaleForMs !== null,
  });
  const flights = createSingleFlight<Listed>();
  const closing = new AbortController();

  function limited<T>(signal: AbortSignal | undefined, work: (signal: AbortSignal) => Promise<T>): Promise<T> {
    return withTimeout(startTimeout(clock, timeoutMs, () => timedOut(timeoutMs), [signal, closing.signal]), work);
  }

  /** Who joined the run of another may have wanted other files, or another directory, and then has a run of its own. */
  async function list(repository: string, query: FileQuery, signal: AbortSignal): Promise<DirectoryListing> {
    const wish = createWish(query);
    const request: ListRequest = { repository, ...wish };
    const key = `${repository}\0${wish.directoryOf(parseName(repository).name)}`;
    for (;;) {
      const run = (nobodyLeft: AbortSignal): Promise<Listed> => limited(nobodyLeft, (within) => listings.list(request, within));
      const listing = wish.granted(await flights.join(key, signal, run), null);
      if (listing !== null) return listing;
    }
  }

  async function remote(repository: string, signal: AbortSignal): Promise<GitRemote> {
    const { owner, name } = parseName(repository);
    const token = await gitToken(signal);
    return hostedRemote(endpoint.pages, `${owner}/${name}`, token === null ? null : basicAuthorization('x-access-token', token));
  }

  async function recall(repository: string, query: FileQuery): Promise<DirectoryListing | null> {
    if (serveStaleForMs === null) return null;
    const wish = createWish(query);
    const listed = await listings.recall({ repository, ...wish }, serveStaleForMs);
    return listed === null ? null : wish.granted(listed, listed.confirmedAt);
  }

  return {
    name: providerName,
    family: 'other',
    hosts: endpoint.hosts,
    async listFiles(repository, query, signal) {
      try {
        return await limited(signal, (within) => list(repository, query, within));
      } catch (error) {
        const recalled = isOutage(error) ? await recall(repository, query) : null;
        if (recalled === null) throw error;
        return recalled;
      }
    },
    find: (repository, signal) => limited(signal, (within) => source.find(repository, within)),
    remote: (repository, signal) => limited(signal, (within) => remote(repository, within)),
    check: () => limited(undefined, (signal) => checkGitHub(transport, resolved, signal)).catch(failedCheck),
    async close() {
      closing.abort(failed('the provider is closed'));
      await flights.settled();
    },
  };
}

function sourceOf(options: ResolvedOptions, transport: Transport): Source {
  const { url, token, app, client, clock, maxFiles } = options;
  const trees = createRestTrees(transport, url, maxFiles);
  if (token === undefined && app === undefined && client === undefined) return createRestSource(transport, url, trees);
  return createGraphqlSource(createGraphql(transport, endpointOf(url).graphql, clock), trees, options);
}
