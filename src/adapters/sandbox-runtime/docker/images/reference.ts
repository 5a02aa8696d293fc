/** The registry that has an image, as Docker's configuration calls it. */
export function registryOf(image: string): string {
  const [first = '', ...rest] = image.split('/');
  const isHost = rest.length > 0 && (/[.:]/.test(first) || first === 'localhost');
  if (!isHost || first === 'docker.io' || first === 'index.docker.io') return dockerHub;
  return first;
}

/** Why a spec's image can't be asked for. What is not of the form of a name could mean something else to the engine. */
export function whyUnusable(image: string | null): string | null {
  if (image === null) return 'its spec names no image';
  const isName = /^[a-z0-9][a-z0-9._:/@-]*$/i.test(image) && !image.includes('..') && !image.includes('//');
  return isName ? null : `${JSON.stringify(image)} is no name of an image; correct the spec's image`;
}

const dockerHub = 'https://index.docker.io/v1/';

/** The registry in words. */
export function registryName(registry: string): string {
  return registry === dockerHub ? 'Docker Hub' : registry;
}
