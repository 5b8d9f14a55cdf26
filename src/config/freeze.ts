// Freezes settings through and through, so that nothing behind the configuration can change it.
// Maps, URLs and byte arrays keep their own state and are only typed as read-only; what maps hold is frozen.

/** The same value, every plain object and list in it frozen. */
export function freezeDeep<T>(value: T): T {
  if (value instanceof Map) {
    for (const held of value.values()) freezeDeep(held);
    return value;
  }
  if (typeof value !== 'object' || value === null || !isPlain(value)) return value;
  for (const held of Object.values(value)) freezeDeep(held);
  return Object.freeze(value);
}

function isPlain(value: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === null || prototype === Object.prototype || Array.isArray(value);
}
