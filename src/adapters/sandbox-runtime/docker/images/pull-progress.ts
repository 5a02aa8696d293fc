import { z } from 'zod';

/** A line of what the engine says while it pulls. */
export const PullMessage = z.object({
  id: z.string().optional(),
  status: z.string().optional(),
  error: z.string().optional(),
  progressDetail: z.object({ current: z.number().optional(), total: z.number().optional() }).optional(),
});
export type PullMessage = z.infer<typeof PullMessage>;

interface Layer {
  current: number;
  total: number;
  done: boolean;
}

const layerDone = new Set(['Pull complete', 'Already exists']);
const layerWork = /^(?:Pulling fs layer|Waiting|Downloading|Verifying Checksum|Download complete|Extracting|Pull complete|Already exists)$/;

/** Gathers what is said of the layers into one line. */
export interface PullProgress {
  note(message: PullMessage): void;
  /** `pulling node:26: 2 of 5 layers, 31 of 96 MB`. */
  line(): string;
}

export function createPullProgress(image: string): PullProgress {
  const layers = new Map<string, Layer>();
  return {
    note({ id, status = '', progressDetail }) {
      if (id === undefined || !layerWork.test(status)) return;
      const layer = layers.get(id) ?? { current: 0, total: 0, done: false };
      layers.set(id, layer);
      if (status === 'Downloading') {
        layer.current = progressDetail?.current ?? layer.current;
        layer.total = progressDetail?.total ?? layer.total;
      } else if (status === 'Download complete') layer.current = layer.total;
      if (layerDone.has(status)) layer.done = true;
    },
    line() {
      const all = [...layers.values()];
      if (all.length === 0) return `pulling ${image}`;
      const sum = (key: 'current' | 'total'): number => all.reduce((bytes, layer) => bytes + layer[key], 0);
      const bytes = sum('total') > 0 ? `, ${megabytes(sum('current'))} of ${megabytes(sum('total'))} MB` : '';
      return `pulling ${image}: ${all.filter(({ done }) => done).length} of ${all.length} layers${bytes}`;
    },
  };
}

function megabytes(bytes: number): string {
  const value = bytes / 1e6;
  return value < 10 ? value.toFixed(1) : String(Math.round(value));
}
