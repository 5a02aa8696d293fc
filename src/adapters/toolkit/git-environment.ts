/**
 * The whole environment of a git process: nothing of the server's but the PATH, nobody's configuration, no question to a
 * person, and no protocol, unless `more` says otherwise.
 */
export function gitEnvironment(more: Readonly<NodeJS.ProcessEnv>): NodeJS.ProcessEnv {
  return {
    PATH: process.env['PATH'],
    LC_ALL: 'C',
    GIT_CONFIG_NOSYSTEM: '1',
    GIT_CONFIG_SYSTEM: '/dev/null',
    GIT_CONFIG_GLOBAL: '/dev/null',
    GIT_ATTR_NOSYSTEM: '1',
    GIT_NO_REPLACE_OBJECTS: '1',
    GIT_NO_LAZY_FETCH: '1',
    GIT_ALLOW_PROTOCOL: 'none',
    GIT_TERMINAL_PROMPT: '0',
    GIT_OPTIONAL_LOCKS: '0',
    GIT_LITERAL_PATHSPECS: '1',
    // One object that claims to be larger than this fails, rather than taking the machine's memory.
    GIT_ALLOC_LIMIT: '512m',
    ...more,
  };
}
