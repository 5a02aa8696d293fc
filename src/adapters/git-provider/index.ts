export {
  basicAuthorization, cacheScope, createHostedProvider, type GitHost, type GitHostOptions, hostDefaults, hostedRemote, requireEncryption,
} from './hosted-provider.ts';
export type { CachedFile, ListingSource, OpenedTree, OpenRequest, TreeFile } from './incremental-listing.ts';
export { itemsPerHostPage, pageOfHost } from './paging.ts';
export { createOrUpdatePullRequest, type ExistingPullRequest } from './pull-requests.ts';
export { CommitDate, linkIn, Oid } from './response-fields.ts';
export { createHttpClient, type HttpClient, type HttpRequest, type HttpResponse, rateLimitIn } from './retrying-http-client.ts';
export { providerFailures, type ProviderFailures } from '../shared/provider-failures.ts';
export { createTimeLimit, type TimeLimit } from '../shared/timeout.ts';
