import Docker from 'dockerode';
import { describe } from 'vitest';

/** The images that `.ci/engine` makes. */
export const images = { debian: 'skep-test/debian', tiny: 'skep-test/tiny' } as const;

const absent = await whyAbsent();

/**
 * Runs a suite with the real engine. If the engine or an image is missing, skips it with a warning, or throws if `SKEP_REQUIRE_DOCKER=1`.
 */
export function describeWithDocker(name: string, suite: () => void): void {
  if (absent === null) {
    describe(name, suite);
    return;
  }
  if (process.env['SKEP_REQUIRE_DOCKER'] === '1') throw new Error(`${name}: ${absent}, and SKEP_REQUIRE_DOCKER=1 asks for it`);
  console.warn(`SKIPPED ${name}: ${absent}. \`bash .ci/engine\` brings what is needed on a Debian machine.`);
  describe.skip(name, suite);
}

async function whyAbsent(): Promise<string | null> {
  const docker = new Docker();
  try {
    await docker.ping();
  } catch {
    return 'no Docker engine answers';
  }
  for (const image of Object.values(images)) {
    try {
      await docker.getImage(image).inspect();
    } catch {
      return `the engine has no image ${image}`;
    }
  }
  return null;
}
