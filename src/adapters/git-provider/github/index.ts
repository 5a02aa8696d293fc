export { createGitHubProvider } from './github-provider.ts';
export type { GitHubApp, GitHubOptions } from './github-provider.ts';
