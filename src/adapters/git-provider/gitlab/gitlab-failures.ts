import { providerFailures } from '../../shared/provider-failures.ts';

/** The name that the provider is configured by. */
export const providerName = 'gitlab';

export const failures = providerFailures(providerName);
export const { failed, notFound, unauthorized, malformed, tooLarge, down } = failures;

/** The reasons of `provider_failed`. */
export const reasons = {
  anotherPath: 'a name can not be asked for',
  endlessHistory: 'the history of a file has no end',
  endlessPages: 'the pages of a directory lead back to earlier ones',
  noApi: "its URL is not that of GitLab's API; check the configured one",
  noJson: 'it does not answer with JSON; check that its URL is that of a GitLab',
  pageLinkBroken: 'its pages link to what is no URL',
  pageLinkOutside: 'its pages link to another origin; configure the URL that it has for itself',
  projectName: 'the name of a project is not of the documented form',
  redirectBroken: 'it redirects to what is no URL',
  redirectElsewhere: 'it redirects to what was not asked for',
  redirectOutside: 'it redirects to an address outside its API; check the configured URL',
  serverError: (status: number) => ({ code: 'server_error', status }) as const,
  unexpectedStatus: (status: number) => ({ code: 'unexpected_status', status }) as const,
};
