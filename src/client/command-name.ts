/** The command that runs this program. A source checkout installs no command. */
export const commandName = import.meta.url.endsWith('.ts') ? 'npm run -s skep --' : 'skep';
