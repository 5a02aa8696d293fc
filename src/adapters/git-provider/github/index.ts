export { createGitHubProvider } from './provider.ts';
export type { GitHubApp, GitHubClient, GitHubOptions } from './options.ts';
