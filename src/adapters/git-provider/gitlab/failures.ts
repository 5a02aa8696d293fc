import { providerFailures } from '../../shared/provider-failures.ts';

/** The name that the provider is configured by. */
export const providerName = 'gitlab';

export const { failed, timedOut, notFound, unauthorized, rateLimited, malformed, tooLarge, down } = providerFailures(providerName);
