/** The oldest version of Node that runs the program. */
const oldest = 24;

/** Returns why this Node can't run the program; null if it can. This file imports nothing, so that every Node can load it. */
export function whyNodeIsTooOld(version: string = process.versions.node): string | null {
  return Number(version.split('.')[0]) < oldest ? `needs Node ${oldest} or newer, and this is ${version}.` : null;
}
