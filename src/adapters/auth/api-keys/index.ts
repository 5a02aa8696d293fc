export { createApiKeyAuth } from './auth.ts';
export type { ApiKeyAuthOptions } from './auth.ts';
export { ApiKeyRefused, createApiKeys, isApiKeyRefused } from './keys.ts';
export type { ApiKeys, ApiKeysOptions, CreatedApiKey, NewApiKey } from './keys.ts';
