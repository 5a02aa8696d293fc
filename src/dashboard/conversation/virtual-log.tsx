import { elementScroll, observeElementOffset, observeElementRect, Virtualizer } from '@tanstack/virtual-core';
import type { ComponentChildren } from 'preact';
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks';
import { Button } from '../ui/controls.tsx';

interface VirtualLogProps {
  readonly count: number;
  readonly label: string;
  readonly keyOf: (index: number) => string;
  readonly rowOf: (index: number) => ComponentChildren;
  /** Changes when older events were read, also if they have no rows; 0 if there are no more. */
  readonly firstId: number;
  /** Called when the beginning is near, and there are older events. */
  readonly onStart: () => void;
}

/** Renders only the visible rows. Stays at the end while the end is visible, and keeps its position when older rows are added. */
export function VirtualLog({ count, label, keyOf, rowOf, firstId, onStart }: VirtualLogProps) {
  const element = useRef<HTMLDivElement>(null);
  const [, draw] = useState(0);
  const options = {
    count,
    getItemKey: keyOf,
    getScrollElement: () => element.current,
    estimateSize: () => 90,
    overscan: 6,
    paddingStart: 8,
    paddingEnd: 16,
    anchorTo: 'end' as const,
    followOnAppend: true,
    scrollEndThreshold: 80,
    observeElementRect,
    observeElementOffset,
    scrollToFn: elementScroll,
    onChange: () => draw((last) => last + 1),
  };
  const [log] = useState(() => new Virtualizer<HTMLDivElement, HTMLDivElement>(options));
  log.setOptions(options);
  // oxlint-disable-next-line eslint/no-underscore-dangle -- what bindings for frameworks call is named so
  useLayoutEffect(() => log._didMount(), []);
  // oxlint-disable-next-line eslint/no-underscore-dangle -- what bindings for frameworks call is named so
  useLayoutEffect(() => log._willUpdate());
  const wasEmpty = useRef(true);
  useEffect(() => {
    if (wasEmpty.current && count > 0) log.scrollToEnd();
    wasEmpty.current = count === 0;
  }, [count]);
  const rows = log.getVirtualItems();
  const first = rows[0]?.index ?? 0;
  useEffect(() => {
    if (firstId > 0 && first < 5) onStart();
  }, [first, count, firstId]);
  const isAtEnd = count === 0 || log.isAtEnd(120);
  return (
    <div class="log-frame">
      <div class="log" ref={element} role="log" aria-live="off" aria-label={label} tabIndex={0}>
        <div style={{ height: `${log.getTotalSize()}px` }}>
          <div class="log-rows" style={{ transform: `translateY(${rows[0]?.start ?? 0}px)` }}>
            {rows.map(({ index, key }) => <div key={key} data-index={index} ref={log.measureElement} class="log-row">{rowOf(index)}</div>)}
          </div>
        </div>
      </div>
      {!isAtEnd && <div class="to-end"><Button onClick={() => log.scrollToEnd()}>Jump to the end</Button></div>}
    </div>
  );
}
