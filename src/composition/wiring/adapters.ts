import { ContainerModule } from 'inversify';
import { openProtocols, openSecrets } from './adapters/agents.ts';
import { openAuth } from './adapters/auth.ts';
import { openCheckouts } from './adapters/checkouts.ts';
import { openGitProviders } from './adapters/git.ts';
import { openProbe } from './adapters/probe.ts';
import { openRuntime } from './adapters/runtime.ts';
import { openStore } from './adapters/store.ts';
import { openClock, openLogger, openRandom } from './adapters/system.ts';
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
  provide(bind, tokens.checkouts, [options, closers], openCheckouts);
  provide(bind, tokens.protocols, [options], openProtocols);
  provide(bind, tokens.secrets, [options], openSecrets);
  provide(bind, tokens.probe, [options], openProbe);
  provide(bind, tokens.auth, [options, tokens.store, tokens.clock], openAuth);
});
