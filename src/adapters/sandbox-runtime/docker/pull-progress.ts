import { z } from 'zod';
import { parseJson } from './engine.ts';

/** A message of the engine while it pulls. */
const PullMessage = z.object({
  id: z.string().optional(),
  status: z.string().optional(),
  error: z.string().optional(),
  progressDetail: z.object({ current: z.number().optional(), total: z.number().optional() }).optional(),
});

export function parsePullMessage(text: string): z.infer<typeof PullMessage> {
  return parseJson(PullMessage, text) ?? {};
}

const layerDone = new Set(['Pull complete', 'Already exists']);
const layerWork =
  /^(?:Pulling fs layer|Waiting|Downloading|Verifying Checksum|Download complete|Extracting|Pull complete|Already exists)$/;

/** Adds up what the messages report of single layers. */
export class PulledLayers {
  readonly #layers = new Map<string, { current: number; total: number; isDone: boolean }>();

  note({ id, status = '', progressDetail }: z.infer<typeof PullMessage>): void {
    if (id === undefined || !layerWork.test(status)) return;
    const layer = this.#layers.get(id) ?? { current: 0, total: 0, isDone: false };
    this.#layers.set(id, layer);
    if (status === 'Downloading') {
      layer.current = progressDetail?.current ?? layer.current;
      layer.total = progressDetail?.total ?? layer.total;
    } else if (status === 'Download complete') layer.current = layer.total;
    if (layerDone.has(status)) layer.isDone = true;
  }

  /** Returns `: 2 of 5 layers, 31 of 96 MB`. Empty before the first layer. */
  progress(): string {
    const all = [...this.#layers.values()];
    if (all.length === 0) return '';
    const sum = (key: 'current' | 'total'): number => all.reduce((bytes, layer) => bytes + layer[key], 0);
    const bytes = sum('total') > 0 ? `, ${megabytes(sum('current'))} of ${megabytes(sum('total'))} MB` : '';
    return `: ${all.filter(({ isDone }) => isDone).length} of ${all.length} layers${bytes}`;
  }
}

function megabytes(bytes: number): string {
  const value = bytes / 1e6;
  return value < 10 ? value.toFixed(1) : String(Math.round(value));
}
