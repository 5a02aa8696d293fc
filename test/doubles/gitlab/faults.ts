/** What the double does in place of an answer. */
export type Fault =
  /** Refuses for the rate of requests, as the throttle in front of the application does. */
  | { readonly kind: 'throttle'; readonly headers: Readonly<Record<string, string>> }
  | { readonly kind: 'status'; readonly status: number; readonly headers?: Readonly<Record<string, string>>; readonly body?: unknown }
  /** Never answers. */
  | { readonly kind: 'stall' }
  /** Closes the connection before, or in the middle of the body. */
  | { readonly kind: 'reset' }
  | { readonly kind: 'cut' }
  /** Answers with this, as JSON unless it says otherwise. */
  | { readonly kind: 'body'; readonly text: string; readonly contentType?: string }
  /** Answers as it should, with other headers. */
  | { readonly kind: 'headers'; readonly headers: Readonly<Record<string, string>> };

/** Which requests a fault befalls: those whose route it is, the first so many of them. */
export interface Trouble {
  readonly fault: Fault;
  /** All, if it is left out. */
  readonly route?: RouteName;
  /** All, if it is left out. */
  readonly times?: number;
  /** How many are answered as they should be before. */
  readonly after?: number;
}

export type RouteName = 'project' | 'commit' | 'commits' | 'tree' | 'version';

export interface Faults {
  add(trouble: Trouble): void;
  clear(): void;
  /** The fault that befalls a request for this route. */
  next(route: RouteName): Fault | null;
}

export function createFaults(): Faults {
  const troubles: { readonly trouble: Trouble; seen: number }[] = [];
  return {
    add: (trouble) => void troubles.push({ trouble, seen: 0 }),
    clear: () => void troubles.splice(0),
    next(route) {
      for (const each of troubles) {
        const { fault, times = Number.POSITIVE_INFINITY, after = 0 } = each.trouble;
        if (each.trouble.route !== undefined && each.trouble.route !== route) continue;
        each.seen += 1;
        if (each.seen > after && each.seen <= after + times) return fault;
      }
      return null;
    },
  };
}
