export { createLocalGitProvider, type LocalGitOptions } from './local-git-provider.ts';
