/** The command of this program. A checkout has none of its own. */
export const commandName = import.meta.url.endsWith('.ts') ? 'npm run -s skep --' : 'skep';
