import type { Agents } from '../../application/agents/agents.ts';
import type { ConversationReconciler } from '../../application/conversations/conversation-reconciler.ts';
import type { Conversations } from '../../application/conversations/conversations.ts';
import type { Events } from '../../application/events/events.ts';
import type { Microagents } from '../../application/microagents/list-microagents.ts';
import type { Sweeper } from '../../application/sweeper.ts';
import type { Repositories } from '../../application/repositories/locate-repository.ts';
import type { SandboxReconciler } from '../../application/sandboxes/sandbox-reconciler.ts';
import type { SandboxPool } from '../../application/sandboxes/sandbox-pool.ts';
import type { Sandboxes } from '../../application/sandboxes/sandboxes.ts';
import type { SandboxSpecs } from '../../application/sandboxes/sandbox-specs.ts';
import type { AgentProtocol } from '../../ports/agent-protocol.ts';
import type { Auth } from '../../ports/auth.ts';
import type { Clock } from '../../ports/clock.ts';
import type { GitProvider } from '../../ports/git-provider.ts';
import type { Logger } from '../../ports/logger.ts';
import type { Random } from '../../ports/random.ts';
import type { ReadinessProbe } from '../../ports/readiness-probe.ts';
import type { RepositoryCheckouts } from '../../ports/repository-checkouts.ts';
import type { SandboxRuntime } from '../../ports/sandbox-runtime.ts';
import type { Secrets } from '../../ports/secrets.ts';
import type { Store } from '../../ports/store.ts';
import type { SkepOptions } from '../options.ts';
import type { Purging } from './purge-events.ts';
import { token } from './token.ts';

/** Everything that the container can make. */
export const tokens = {
  options: token<SkepOptions>('options'),
  /** What has to be closed, last opened first. */
  closers: token<AsyncDisposableStack>('closers'),

  clock: token<Clock>('Clock'),
  random: token<Random>('Random'),
  logger: token<Logger>('Logger'),
  gitProviders: token<readonly GitProvider[]>('GitProvider[]'),
  runtime: token<SandboxRuntime>('SandboxRuntime'),
  probe: token<ReadinessProbe>('ReadinessProbe'),
  store: token<Store>('Store'),
  auth: token<Auth>('Auth'),
  checkouts: token<RepositoryCheckouts>('RepositoryCheckouts'),
  protocols: token<readonly AgentProtocol[]>('AgentProtocol[]'),
  secrets: token<Secrets>('Secrets'),

  repositories: token<Repositories>('Repositories'),
  microagents: token<Microagents>('Microagents'),
  specs: token<SandboxSpecs>('SandboxSpecs'),
  sandboxReconciler: token<SandboxReconciler>('SandboxDriver'),
  sandboxPool: token<SandboxPool>('Pool'),
  sandboxes: token<Sandboxes>('Sandboxes'),
  events: token<Events>('Events'),
  agents: token<Agents>('Agents'),
  conversationReconciler: token<ConversationReconciler>('ConversationDriver'),
  conversations: token<Conversations>('Conversations'),
  sweeper: token<Sweeper>('Reconciler'),
  purging: token<Purging>('Purging'),
};
