export { type ApiKeyAuthOptions, ApiKeyRefused, type ApiKeys, createApiKeyAuth, createApiKeys, type NewApiKey } from './api-keys.ts';
