/** Why something that a suite needs is absent, for it to be skipped. Throws it where `SKEP_REQUIRE_DOCKER=1` asks for all that is needed. */
export function unlessRequired(why: string | null): string | null {
  if (why !== null && process.env['SKEP_REQUIRE_DOCKER'] === '1') throw new Error(`${why}, and SKEP_REQUIRE_DOCKER=1 asks for it`);
  return why;
}
