import type { Skep } from '../../application/skep.ts';
import type { Principal } from '../../domain/principal.ts';
import { Logins } from './guards/logins.ts';
import { requestRate } from './guards/request-rate.ts';
import type { RouterSettings } from './options.ts';
import { Papers } from './papers.ts';
import { Readiness } from './readiness.ts';
import { operations } from './routes/index.ts';

/** What one router stands on, for all its requests. */
export interface Deployment {
  readonly skep: Skep;
  readonly settings: RouterSettings;
  /** The path of the public address, without a slash at its end. */
  readonly publicPath: string;
  readonly logins: Logins;
  /** Null where there is no limit. */
  readonly limitRequests: ((principal: Principal) => Promise<void>) | null;
  readonly papers: Papers;
  readonly readiness: Readiness;
  /** Fires when the server takes no new work: what would go on for ever ends then. */
  readonly ending: AbortSignal;
}

export function deploymentOf(skep: Skep, settings: RouterSettings, ending: AbortSignal = new AbortController().signal): Deployment {
  return {
    skep,
    settings,
    publicPath: settings.publicUrl === null ? '' : new URL(settings.publicUrl).pathname.replace(/\/+$/, ''),
    logins: new Logins(skep.auth, settings.failedLoginsPerMinute),
    limitRequests: requestRate(settings.requestsPerMinute),
    papers: new Papers(operations, settings),
    readiness: new Readiness(skep),
    ending,
  };
}
