export { createLocalGitProvider } from './provider.ts';
export type { LocalGitOptions } from './options.ts';
