export {
  basicAuthorization, cacheScope, createHostedProvider, type GitHost, type GitHostOptions, hostDefaults, hostedRemote, requireEncryption,
} from './hosted-provider.ts';
export type { Head, ListingSource, OpenedTree, OpenRequest, TreeFile } from './incremental-listing.ts';
export { itemsPerHostPage, pageOfHost } from './paging.ts';
export { createOrUpdatePullRequest, type ExistingPullRequest } from './pull-requests.ts';
export { CommitDate, linkIn, Oid } from './response-fields.ts';
export { createHttpClient, type HttpClient, type HttpRequest, type HttpResponse, isOfOrigin, rateLimitIn } from './retrying-http-client.ts';
export { providerFailures, type ProviderFailures } from '../shared/provider-failures.ts';
export { hostMessage } from '../shared/git-host-message.ts';
export { createTimeLimit, type TimeLimit } from '../shared/timeout.ts';
