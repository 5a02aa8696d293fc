export { createGitHubProvider } from './github-provider.ts';
export type { GitHubApp, GitHubClient, GitHubOptions } from './github-provider.ts';
