/** The oldest supported version of Node. */
const oldest = 24;

/** Returns the reason why this Node can't run the program; null if it can. This file imports nothing, so every Node can load it. */
export function whyNodeIsTooOld(version: string = process.versions.node): string | null {
  return Number(version.split('.')[0]) < oldest ? `needs Node ${oldest} or newer, and this is ${version}.` : null;
}
