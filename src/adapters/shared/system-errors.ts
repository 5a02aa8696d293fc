/** Returns the code of a system error, such as `ENOENT`. Undefined for any other error. */
export function errorCode(error: unknown): string | undefined {
  return error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : undefined;
}

/** Returns a handler of rejections. It turns these system errors into null, and throws any other error again. */
export function ignoring(...codes: readonly string[]): (error: unknown) => null {
  return (error) => {
    if (codes.includes(errorCode(error) ?? '')) return null;
    throw error;
  };
}
