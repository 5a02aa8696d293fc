interface MeterProps {
  readonly label: string;
  readonly value: number;
  /** Null: no limit. */
  readonly max: number | null;
  readonly text: string;
  /** True if a full bar is good, so it does not warn. */
  readonly isGoal?: boolean;
}

/** A usage bar. It warns from 80 percent. */
export function Meter({ label, value, max, text, isGoal = false }: MeterProps) {
  const share = max === null || max === 0 ? 0 : Math.min(1, value / max);
  return (
    <div class="meter">
      <p><span>{label}</span><span class="number">{text}</span></p>
      {max !== null && (
        <div role="meter" aria-label={label} aria-valuemin={0} aria-valuemax={max} aria-valuenow={value} aria-valuetext={text}
          class={isGoal ? '' : share >= 0.95 ? 'bad' : share >= 0.8 ? 'wait' : ''}>
          <i style={{ width: `${share * 100}%` }} />
        </div>
      )}
    </div>
  );
}

interface SparklineProps {
  readonly label: string;
  readonly values: readonly number[];
  /** The number of values that fill the width. */
  readonly length: number;
  readonly max: number;
}

/** A line chart of measured values, the newest on the right. */
export function Sparkline({ label, values, length, max }: SparklineProps) {
  if (values.length < 2) return null;
  const points = values.map((value, index) => {
    const x = 100 - ((values.length - 1 - index) / (length - 1)) * 100;
    return `${x.toFixed(1)},${(29 - (max === 0 ? 0 : Math.min(1, value / max)) * 28).toFixed(1)}`;
  });
  const first = points[0]?.split(',')[0] ?? '100';
  return (
    <svg class="sparkline" viewBox="0 0 100 30" preserveAspectRatio="none" role="img" aria-label={label}>
      <polygon points={`${first},30 ${points.join(' ')} 100,30`} />
      <polyline points={points.join(' ')} />
    </svg>
  );
}
