/** The oldest supported version of Node. */
const minNodeVersion = 24;

/** Returns the reason why this Node can't run the program; null if it can. This file imports nothing, so every Node can load it. */
export function whyNodeIsTooOld(version: string = process.versions.node): string | null {
  return Number(version.split('.')[0]) < minNodeVersion ? `needs Node ${minNodeVersion} or newer, and this is ${version}.` : null;
}
