export type { ContractCase } from './contract.ts';
export { agentContract } from './agent.ts';
export type { AgentBehaviour, AgentHarness, AgentTraits, RunningAgent } from './agent-harness.ts';
export { scripted, stepsOf, type AgentStep } from './agent-script.ts';
export { apiKeyStoreContract } from './api-key-store.ts';
export { authContract, type AuthHarness, type OpenAuth } from './auth.ts';
export { clockContract } from './clock.ts';
export { createSystemClock } from '../../src/adapters/clock/system-clock.ts';
export { conversationStoreContract } from './conversation-store.ts';
export { eventStoreContract } from './event-store.ts';
export { executionStoreContract } from './execution-store.ts';
export { gitProviderContract } from './git-provider.ts';
export type {
  GitProviderHarness, GitProviderTraits, HostedPullRequest, ProviderHost, PullRequestControl,
} from './git-provider-harness.ts';
export { createRepository, git, type RepositoryDescription } from './git-repository.ts';
export { startHostProxy, type HostBehaviour, type HostProxy, type Interceptor } from './host-proxy.ts';
export { listingCacheContract, type ListingCacheHarness } from './listing-cache.ts';
export { randomContract } from './random.ts';
export { readinessProbeContract, type ReadinessProbeHarness } from './readiness-probe.ts';
export { repositoryCheckoutsContract } from './repository-checkouts.ts';
export type { CheckoutSource, RepositoryCheckoutsHarness, RepositoryCheckoutsTraits } from './repository-checkouts-harness.ts';
export { sandboxExecutionsContract } from './sandbox-executions.ts';
export {
  executionCommands, type ExecutionCommand, type SandboxExecutionsHarness, type SandboxExecutionsTraits,
} from './sandbox-executions-harness.ts';
export { sandboxRuntimeContract } from './sandbox-runtime.ts';
export { shellCommands, type SandboxCommand, type SandboxCommands } from './sandbox-runtime-commands.ts';
export type { SandboxProgram, SandboxRuntimeHarness, SandboxRuntimeTraits } from './sandbox-runtime-harness.ts';
export { sandboxStoreContract } from './sandbox-store.ts';
export { specStoreContract } from './spec-store.ts';
export { storeContract, type OpenStore, type StoreHarness, type StoreTraits } from './store.ts';
export * from '../doubles/memory/index.ts';
