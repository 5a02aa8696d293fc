/** Returns why a suite is skipped: what it needs is absent. Throws that if `SKEP_REQUIRE_DOCKER=1` asks for all that is needed. */
export function unlessRequired(why: string | null): string | null {
  if (why !== null && process.env['SKEP_REQUIRE_DOCKER'] === '1') throw new Error(`${why}, and SKEP_REQUIRE_DOCKER=1 asks for it`);
  return why;
}
