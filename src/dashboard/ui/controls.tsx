import type { ComponentChildren } from 'preact';
import { useId, useState } from 'preact/hooks';
import { absoluteTime, relativeTime, readableName } from '../format.ts';
import { useInterval } from '../live-resources.ts';
import { href, type Query, route } from '../route.ts';
import { Icon, type IconName } from './icons.tsx';

export interface ButtonProps {
  readonly kind?: 'plain' | 'primary' | 'danger' | 'quiet';
  readonly icon?: IconName;
  /** The description of a button that is only an icon. */
  readonly label?: string;
  readonly type?: 'button' | 'submit';
  /** It keeps the focus. A form must ignore its disabled button itself. */
  readonly disabled?: boolean;
  readonly autofocus?: boolean;
  readonly onClick?: () => void;
  readonly children?: ComponentChildren;
}

export function Button({ kind = 'plain', icon, label, type = 'button', disabled, onClick, children, ...rest }: ButtonProps) {
  const look = `button ${kind}${children === undefined ? ' square' : ''}`;
  return (
    <button type={type} class={look} aria-label={label} title={label} {...rest} aria-disabled={disabled}
      onClick={disabled === true ? undefined : onClick}>
      {icon !== undefined && <Icon name={icon} />}{children}
    </button>
  );
}

interface LinkProps {
  readonly to: readonly string[];
  readonly query?: Query;
  readonly class?: string;
  /** Whether it leads to what is shown. */
  readonly current?: boolean;
  readonly children: ComponentChildren;
}

export function Link({ to, query, current = false, children, ...rest }: LinkProps) {
  return <a href={href(to, query)} aria-current={current ? 'page' : undefined} {...rest}>{children}</a>;
}

/** An external link. The address can come from an agent, so only web addresses become links. */
export function ExternalLink({ url, children }: { readonly url: string; readonly children: ComponentChildren }) {
  return /^https?:\/\//i.test(url) ? <a href={url} target="_blank" rel="noopener noreferrer">{children}</a> : <span>{children}</span>;
}

export function Time({ at }: { readonly at: string }) {
  // Drawn again, because the shown time is relative to now.
  const [, draw] = useState(0);
  useInterval(() => draw((count) => count + 1), 30_000);
  return <time dateTime={at} title={absoluteTime(at)}>{relativeTime(at)}</time>;
}

const tones: Readonly<Record<string, string>> = {
  RUNNING: 'good', READY: 'good', running: 'active', idle: 'good', ok: 'good', valid: 'good', completed: 'good',
  STARTING: 'active', RESUMING: 'active', PAUSING: 'active', WORKING: 'active', in_progress: 'active',
  waiting_for_permission: 'wait', ERROR: 'bad', error: 'bad', MISSING: 'bad', failed: 'bad', revoked: 'bad',
};

/** Texts for statuses whose API name is not clear enough. */
const statusNames: Readonly<Record<string, string>> = { waiting_for_permission: 'Waits for you', running: 'Working' };

/** A status as a dot with its name. The colour adds no information. */
export function Status({ value, label = statusNames[value] ?? readableName(value) }: { readonly value: string; readonly label?: string }) {
  return <span class={`status ${tones[value] ?? 'rest'}`}><i />{label}</span>;
}

interface FieldProps {
  readonly label: string;
  readonly hint?: ComponentChildren;
  readonly children: ComponentChildren;
}

export function Field({ label, hint, children }: FieldProps) {
  return <label class="field"><span>{label}</span>{children}{hint !== undefined && <small>{hint}</small>}</label>;
}

interface CheckboxProps {
  readonly label: string;
  /** The name of its value in a form. */
  readonly name?: string;
  readonly checked?: boolean;
  readonly onChange?: (checked: boolean) => void;
}

export function Checkbox({ label, onChange, ...rest }: CheckboxProps) {
  const change = (event: { readonly currentTarget: HTMLInputElement }) => onChange?.(event.currentTarget.checked);
  return <label class="check"><input type="checkbox" {...rest} onChange={change} />{label}</label>;
}

interface SelectProps {
  /** The name of a select that is not in a field. */
  readonly label?: string;
  /** The name of its value in a form. */
  readonly name?: string;
  readonly value?: string;
  readonly options: readonly (readonly [value: string, label: string])[];
  readonly onChange?: (value: string) => void;
}

export function Select({ label, options, onChange, ...rest }: SelectProps) {
  return (
    <select aria-label={label} {...rest} onChange={(event) => onChange?.(event.currentTarget.value)}>
      {options.map(([value, label]) => <option key={value} value={value}>{label}</option>)}
    </select>
  );
}

interface SuggestedInputProps {
  /** The name of an input that is not in a field. */
  readonly label?: string;
  /** The name of its value in a form. */
  readonly name?: string;
  readonly value?: string;
  readonly placeholder: string;
  readonly suggestions: readonly string[];
  readonly onInput?: (value: string) => void;
}

/** An input with suggestions, which also takes any other text. */
export function SuggestedInput({ label, suggestions, onInput, ...rest }: SuggestedInputProps) {
  const list = useId();
  return (
    <>
      <input list={list} {...rest} aria-label={label} spellcheck={false} autocomplete="off"
        onInput={(event) => onInput?.(event.currentTarget.value.trim())} />
      <datalist id={list}>{suggestions.map((text) => <option key={text} value={text} />)}</datalist>
    </>
  );
}

/** Whether an input method has the key. Safari reports the Enter that ends a composition only after its end, with the key code 229. */
export function isComposing(event: KeyboardEvent): boolean {
  return event.isComposing || event.keyCode === 229;
}

interface TabsProps {
  readonly tabs: readonly (readonly [id: string, label: ComponentChildren])[];
  readonly current: string;
}

/** Links to the tabs of the resource of this page. */
export function Tabs({ tabs, current }: TabsProps) {
  return (
    <nav class="tabs">
      {tabs.map(([id, label], index) => (
        <Link key={id} to={route.value.path} query={{ tab: index === 0 ? null : id }} current={id === current}>{label}</Link>
      ))}
    </nav>
  );
}

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

/** A list of names and values. */
export function Facts({ facts }: { readonly facts: readonly (readonly [name: string, value: ComponentChildren])[] }) {
  const shown = facts.filter(([, value]) => value !== null && value !== undefined && value !== false && value !== '');
  return <dl class="facts">{shown.map(([name, value]) => <div key={name}><dt>{name}</dt><dd>{value}</dd></div>)}</dl>;
}

/** A column: its name, its style, and its content for an item. */
export type Column<T> = readonly [name: string, look: string, show: (item: T) => ComponentChildren];

export interface TableProps<T> {
  readonly items: readonly T[];
  readonly keyOf: (item: T) => string | number;
  readonly columns: readonly Column<T>[];
  readonly rowClass?: (item: T) => string;
  /** The items are of earlier filters; others are being loaded. */
  readonly isStale?: boolean;
}

export function Table<T>({ items, keyOf, columns, rowClass, isStale = false }: TableProps<T>) {
  return (
    <table aria-busy={isStale}>
      <thead><tr>{columns.map(([name, look]) => <th key={name} class={look}>{name}</th>)}</tr></thead>
      <tbody>
        {items.map((item) => (
          <tr key={keyOf(item)} class={rowClass?.(item)}>
            {columns.map(([name, look, show]) => <td key={name} class={look}>{show(item)}</td>)}
          </tr>
        ))}
      </tbody>
    </table>
  );
}
