export { createGitMirror, type GitMirrorOptions } from './git-mirror.ts';
