import { ContainerModule } from 'inversify';
import { openAuth } from '../adapters/auth.ts';
import { openGitProviders } from '../adapters/git.ts';
import { openProbe } from '../adapters/probe.ts';
import { openRuntime } from '../adapters/runtime.ts';
import { openStore } from '../adapters/store.ts';
import { openClock, openLogger, openRandom } from '../adapters/system.ts';
import { provide } from './provide.ts';
import { tokens } from './tokens.ts';

/** One adapter for each port, as the options choose. */
export const adaptersModule = new ContainerModule(({ bind }) => {
  const { options, closers } = tokens;
  provide(bind, tokens.clock, [options], openClock);
  provide(bind, tokens.random, [options], openRandom);
  provide(bind, tokens.logger, [options], openLogger);
  provide(bind, tokens.store, [options, closers], openStore);
  provide(bind, tokens.gitProviders, [options, tokens.store, tokens.clock, closers], openGitProviders);
  provide(bind, tokens.runtime, [options, closers], openRuntime);
  provide(bind, tokens.probe, [options], openProbe);
  provide(bind, tokens.auth, [options, tokens.store, tokens.clock], openAuth);
});
