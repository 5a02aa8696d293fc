export type { ApiKeys, CreatedApiKey, NewApiKey } from '../../../ports/api-keys.ts';
export { type ApiKeyAuthOptions, createApiKeyAuth, createApiKeys } from './api-keys.ts';
