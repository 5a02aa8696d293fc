import { isFailure } from '../../../domain/failure.ts';
import type { DirectoryListing, FileQuery, GitProvider, RepositoryInfo } from '../../../ports/git-provider.ts';
import { isOutage } from '../../shared/provider-failures.ts';
import { createSingleFlight } from '../../shared/single-flight.ts';
import { hostedRemote } from '../git-host-options.ts';
import { startTimeout, withTimeout } from '../../shared/timeout.ts';
import { createApi, type Api } from './api.ts';
import { checkHost } from './check.ts';
import { createClient } from './client.ts';
import { createConfirmations } from './confirmations.ts';
import { createCredential, gitAuthorization } from './credential.ts';
import { failed, providerName, timedOut } from './failures.ts';
import { checkName, readHead, type Head } from './head.ts';
import { createKnowledge } from './knowledge.ts';
import { createListings, type ListingRequest } from './listings.ts';
import { resolveOptions, type GitLabOptions } from './options.ts';
import { failureOf, Refusal } from './refusal.ts';
import { createTransport } from './transport.ts';

/** Serves the projects of a GitLab, by its REST API. */
export function createGitLabProvider(options: GitLabOptions): GitProvider {
  const resolved = resolveOptions(options);
  const { host, clock, timeoutMs, maxFiles } = resolved;
  const credential = createCredential(resolved);
  const transport = createTransport({ ...resolved, credential });
  const knowledge = createKnowledge(resolved.knowledge, host, credential);
  const confirmations = createConfirmations(knowledge, clock, resolved.serveStaleForMs);
  const closing = new AbortController();
  const heads = createSingleFlight<Head>();
  const finds = createSingleFlight<RepositoryInfo>();
  const apiFor = (signal: AbortSignal): Api => createApi(createClient(transport, host, signal));
  const listings = createListings({ knowledge, maxFiles, apiFor, limited });

  function limited<T>(signal: AbortSignal | undefined, work: (signal: AbortSignal) => Promise<T>): Promise<T> {
    return withTimeout(startTimeout(clock, timeoutMs, () => timedOut(timeoutMs), [signal, closing.signal]), work);
  }

  /** As `limited`, with the host's refusals in the port's words. */
  async function asking<T>(repository: string, signal: AbortSignal | undefined, work: (signal: AbortSignal) => Promise<T>): Promise<T> {
    try {
      return await limited(signal, work);
    } catch (error) {
      throw error instanceof Refusal ? failureOf(error, repository) : error;
    }
  }

  async function list(repository: string, query: FileQuery, signal: AbortSignal): Promise<DirectoryListing> {
    const head = await heads.join(repository, signal, (nobodyLeft) =>
      limited(nobodyLeft, (either) => readHead(apiFor(either), repository)),
    );
    const directory = query.directory(head.name);
    const request = listingRequest(head, directory, query);
    const files = request === null ? [] : await listings.read(request, signal);
    await confirmations.note(repository, head);
    return { directory, files };
  }

  /** What the host confirmed lately, if that is all known; null where it is not, or where that is not wanted. */
  async function recall(repository: string, query: FileQuery): Promise<DirectoryListing | null> {
    const confirmation = await confirmations.recent(repository);
    if (confirmation === null) return null;
    const directory = query.directory(confirmation.head.name);
    const request = listingRequest(confirmation.head, directory, query);
    const files = request === null ? [] : await listings.recall(request);
    return files === null ? null : { directory, files, confirmedAt: confirmation.at };
  }

  async function find(repository: string, signal: AbortSignal): Promise<RepositoryInfo> {
    const project = await apiFor(signal).project(repository);
    const branch = project.empty_repo === true ? null : (project.default_branch ?? null);
    return { path: project.path_with_namespace, defaultBranch: branch };
  }

  return {
    name: providerName,
    family: 'gitlab',
    hosts: [host.name],
    async listFiles(repository, query, signal) {
      checkName(repository);
      try {
        return await asking(repository, signal, (either) => list(repository, query, either));
      } catch (error) {
        const recalled = isOutage(error) && !closing.signal.aborted ? await recall(repository, query) : null;
        if (recalled === null) throw error;
        return recalled;
      }
    },
    async find(repository, signal) {
      checkName(repository);
      return await asking(repository, signal, (either) =>
        finds.join(repository, either, (nobodyLeft) => limited(nobodyLeft, (inner) => find(repository, inner))),
      );
    },
    async remote(repository, signal) {
      checkName(repository);
      const headers = await limited(signal, () => credential.headers());
      return hostedRemote(host.pages, repository, gitAuthorization(headers));
    },
    async check() {
      try {
        return await limited(undefined, (signal) => checkHost(apiFor(signal), host, credential));
      } catch (error) {
        return { ok: false, detail: isFailure(error) ? error.message : 'the check failed' };
      }
    },
    async close() {
      closing.abort(failed('the provider is closed'));
      await Promise.all([heads.settled(), finds.settled(), listings.settled()]);
    },
  };
}

/** Null for an empty repository. */
function listingRequest(head: Head, directory: string, query: FileQuery): ListingRequest | null {
  const { sha } = head;
  return sha === null ? null : { head: { ...head, sha }, directory, accepts: (path) => query.accepts(path) };
}
