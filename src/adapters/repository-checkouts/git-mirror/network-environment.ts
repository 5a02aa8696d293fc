import type { GitRemote } from '../../../ports/git-provider.ts';

// Which way out the machine's network has, and whom it trusts.
const surroundings = [
  'http_proxy',
  'https_proxy',
  'all_proxy',
  'no_proxy',
  'HTTPS_PROXY',
  'ALL_PROXY',
  'NO_PROXY',
  'SSL_CERT_FILE',
  'SSL_CERT_DIR',
  'GIT_SSL_CAINFO',
  'GIT_SSL_CAPATH',
];

/**
 * What a git that fetches has in its environment. The credential is there and nowhere else: other users can read the
 * arguments of a process, and files stay. It goes to the one URL, and with no redirect to another.
 */
export function networkEnvironment({ url, authorization }: GitRemote, answerMs: number): NodeJS.ProcessEnv {
  if (!isUrl(url)) return { GIT_ALLOW_PROTOCOL: 'file' };
  const settings = [
    ['http.followRedirects', 'false'],
    ['http.lowSpeedLimit', '1'],
    ['http.lowSpeedTime', String(Math.max(1, Math.ceil(answerMs / 1000)))],
    ...(authorization === null ? [] : [[`http.${url}.extraHeader`, `Authorization: ${authorization}`]]),
  ] as const;
  return {
    ...Object.fromEntries(surroundings.flatMap((name) => (process.env[name] === undefined ? [] : [[name, process.env[name]]]))),
    GIT_ALLOW_PROTOCOL: new URL(url).protocol.slice(0, -1),
    GIT_CONFIG_COUNT: String(settings.length),
    ...Object.fromEntries(
      settings.flatMap(([key, value], index) => [
        [`GIT_CONFIG_KEY_${index}`, key],
        [`GIT_CONFIG_VALUE_${index}`, value],
      ]),
    ),
  };
}

/** Is it on a host, and not a folder of this machine? */
export function isUrl(remote: string): boolean {
  return /^https?:\/\//iu.test(remote);
}
