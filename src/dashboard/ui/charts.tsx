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
  const limits = isGoal || max === null ? {} : { optimum: 0, low: max * 0.8, high: max * 0.95 };
  return (
    <div class="meter">
      <p><span>{label}</span><span class="number">{text}</span></p>
      {max !== null && <meter aria-label={label} aria-valuetext={text} max={max} value={value} {...limits} />}
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
