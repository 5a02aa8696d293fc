import type Docker from 'dockerode';

/** The prefix of Skep's own labels. A spec can't set them. */
export const reservedPrefix = 'skep.';

/** The labels of a deployment's objects. No label holds a secret: every user of the engine can read them. */
export const labels = {
  deployment: `${reservedPrefix}deployment`,
  /** The sandbox's id, on its container. */
  sandbox: `${reservedPrefix}sandbox`,
  /** The id of its spec at creation. */
  spec: `${reservedPrefix}spec`,
  /** The owner at creation. Members of a pool have none: labels can't be changed. */
  owner: `${reservedPrefix}owner`,
  /** The spec's ports, as JSON: `[{"name": "WEB", "port": 8080}]`. */
  ports: `${reservedPrefix}ports`,
  /** The sandbox's id, on its other objects, such as volumes. */
  partOf: `${reservedPrefix}part-of`,
  /** The version of the firewall's rules, and the engine's start time. */
  firewall: `${reservedPrefix}firewall`,
} as const;

/** The id and the deployment are DNS labels. These contain no underscore, so the underscores separate the parts. */
export function containerName(deployment: string, id: string): string {
  return `skep_${deployment}_${id}`;
}

export function isOwn(found: Docker.ContainerInspectInfo | null, deployment: string, id: string): boolean {
  return found?.Config.Labels[labels.deployment] === deployment && found.Config.Labels[labels.sandbox] === id;
}
