import { type Conversation, workingDirOf } from '../../domain/conversation.ts';
import type { Sandbox } from '../../domain/sandbox.ts';
import type { CheckoutProgress, RepositoryCheckouts } from '../../ports/repository-checkouts.ts';
import type { SandboxRuntime } from '../../ports/sandbox-runtime.ts';
import type { Repositories } from '../repositories/locate-repository.ts';

export interface PrepareRepositoryDeps {
  readonly repositories: Repositories;
  readonly checkouts: RepositoryCheckouts;
  readonly runtime: SandboxRuntime;
}

/**
 * Puts a work tree of the repository into the sandbox. The provider's credential goes no further than the checkout on
 * this host. Doing it again puts the same files over those that are there.
 */
export async function prepareRepository(
  { repositories, checkouts, runtime }: PrepareRepositoryDeps,
  conversation: Conversation,
  repository: string,
  sandbox: Sandbox,
  progress: CheckoutProgress,
  signal: AbortSignal,
): Promise<void> {
  const { provider, path: named } = repositories.locate(repository);
  const { path } = await provider.find(named, signal);
  const remote = await provider.remote(path, signal);
  const request = { provider: provider.name, repository: path, remote, branch: conversation.selectedBranch };
  const { archive } = await checkouts.checkOut(request, progress, signal);
  progress('putting the files into the sandbox');
  try {
    await runtime.putFiles(sandbox.instanceId, workingDirOf(conversation, sandbox.spec), archive, signal);
  } catch (error) {
    // A stream that is locked or over is its reader's; one that nobody took is let go of here.
    await archive.cancel(error).catch(() => {});
    throw error;
  }
}
