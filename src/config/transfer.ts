// Settings as they are sent between threads. The structured clone algorithm keeps maps, sets and bytes, but makes an empty
// object of a URL, and of any other instance of a class; so URLs are sent as text, and nothing else is accepted. What
// arrives is frozen like the settings that are read in place.

import { freezeDeep } from './resolve.js';

type Step = string | number;

/** A value of which some parts were URLs. */
export type Transfer = { readonly value: unknown; readonly urls: readonly (readonly Step[])[] };

/** Throws where the value holds something that cannot be sent. */
export function toTransfer(value: unknown): Transfer {
  const urls: (readonly Step[])[] = [];
  return { value: copy(value, [], urls), urls };
}

function copy(value: unknown, path: readonly Step[], urls: (readonly Step[])[]): unknown {
  const copyPart = (part: unknown, step: Step): unknown => copy(part, [...path, step], urls);
  if (typeof value === 'function' || typeof value === 'symbol') throw new TypeError('a function cannot be sent');
  if (typeof value !== 'object' || value === null || value instanceof Uint8Array) return value;
  if (value instanceof URL) {
    urls.push(path);
    return value.href;
  }
  if (Array.isArray(value)) return value.map(copyPart);
  if (value instanceof Set) return new Set([...value].map((part) => copyPart(part, '')));
  if (value instanceof Map) return new Map([...value].map(([key, part]) => [key, copyPart(part, key as Step)]));
  const prototype: unknown = Object.getPrototypeOf(value);
  if (prototype !== Object.prototype && prototype !== null) throw new TypeError('an instance cannot be sent');
  return Object.fromEntries(Object.entries(value).map(([name, part]) => [name, copyPart(part, name)]));
}

/** The value that `toTransfer` was given, frozen. It is made of what was received, which nobody else may hold. */
export function fromTransfer<Value>({ value, urls }: Transfer): Value {
  for (const path of urls) {
    const last = path.at(-1) ?? '';
    const holder = path.slice(0, -1).reduce(partOf, value);
    const url = new URL(String(partOf(holder, last)));
    if (holder instanceof Map) holder.set(last, url);
    else (holder as { [step: Step]: unknown })[last] = url;
  }
  return freezeDeep(value as Value);
}

function partOf(holder: unknown, step: Step): unknown {
  return holder instanceof Map ? holder.get(step) : (holder as { readonly [step: Step]: unknown })[step];
}
