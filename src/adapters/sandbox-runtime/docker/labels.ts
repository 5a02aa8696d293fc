/** Labels that begin so are Skep's; a spec can't set them. */
export const reservedPrefix = 'skep.';

/** What is written on whatever belongs to a deployment. No label holds a secret: whoever sees the engine sees them. */
export const labels = {
  deployment: `${reservedPrefix}deployment`,
  /** The sandbox's id, on its container. */
  sandbox: `${reservedPrefix}sandbox`,
  /** The id of its spec when it was made. */
  spec: `${reservedPrefix}spec`,
  /** Whose sandbox it was when it was made. Members of a pool have none: labels can't be changed. */
  owner: `${reservedPrefix}owner`,
  /** The spec's ports, as JSON: `[{"name": "WEB", "port": 8080}]`. */
  ports: `${reservedPrefix}ports`,
  /** The sandbox's id, on what belongs to it besides its container. */
  partOf: `${reservedPrefix}part-of`,
  /** Which rules of the firewall were made, and since when the engine runs. */
  firewall: `${reservedPrefix}firewall`,
} as const;

/** Id and deployment are DNS labels. These have no underscores, which keep the parts of a name apart. */
export function containerName(deployment: string, id: string): string {
  return `skep_${deployment}_${id}`;
}

/** Do the labels say that it is the container of this deployment's sandbox? */
export function isOwn(found: Readonly<Record<string, string>> | undefined, deployment: string, id: string): boolean {
  return found?.[labels.deployment] === deployment && found[labels.sandbox] === id;
}
