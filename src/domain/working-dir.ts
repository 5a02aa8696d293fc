import type { Conversation } from './conversation.ts';
import type { SandboxSpec } from './sandbox-spec.ts';

/**
 * Where in its sandbox a conversation works: the spec's working directory. One that brings a repository into a sandbox that
 * it was given has a folder of its own below, so that it overwrites nothing of whoever else works there. It follows
 * from what never changes, so that it is the same after every restart.
 */
export function workingDirOf({ id, startsSandbox, selectedRepository }: Conversation, { workingDir }: SandboxSpec): string {
  const shared = !startsSandbox && selectedRepository !== null;
  return shared ? `${workingDir.replace(/\/+$/, '')}/${id}` : workingDir;
}
