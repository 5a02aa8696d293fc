export interface OutputWatcher {
  /** The stream has ended, or broken off, while it was still read. */
  readonly ended: () => void;
  /** Its reader wants no more of it. */
  readonly left: () => void;
}

/** The stream, and whoever watches it is told how it ends before its reader is. Nothing is read ahead. */
export function watched(stream: ReadableStream<Uint8Array>, { ended, left }: OutputWatcher): ReadableStream<Uint8Array> {
  const reader = stream.getReader();
  const next = async (): Promise<Uint8Array | undefined> => {
    try {
      const { value } = await reader.read();
      if (value === undefined) ended();
      return value;
    } catch (error) {
      ended();
      throw error;
    }
  };
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        const chunk = await next();
        if (chunk === undefined) controller.close();
        else controller.enqueue(chunk);
      },
      async cancel(reason) {
        left();
        await reader.cancel(reason);
      },
    },
    { highWaterMark: 0 },
  );
}
