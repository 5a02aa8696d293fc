export { createLocalGitProvider } from './local-git-provider.ts';
export type { LocalGitOptions } from './local-git-provider.ts';
