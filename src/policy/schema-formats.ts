// The few formats that are asserted: those whose form is plain. Every other format is an annotation.
// Each check is linear in the text, which is cut at a length first.
// Source: JSON Schema 2020-12 validation §7.3; RFC 3339 §5.6; RFC 4122 §3; RFC 3986.

/** A text longer than this has none of the asserted formats. */
const MAX_FORMAT_CHARS = 2048;

const DATE = /^(\d{4})-(\d{2})-(\d{2})$/;
const TIME =
  /^([01]\d|2[0-3]):[0-5]\d:([0-5]\d|60)(?:\.\d+)?(?:[zZ]|[+-](?:[01]\d|2[0-3]):[0-5]\d)$/;
const EMAIL = /^[^\s@"<>]{1,64}@[^\s@"<>.]+(?:\.[^\s@"<>.]+)*$/;
const URI = /^[A-Za-z][A-Za-z0-9+.-]*:[^\s<>"{}|\\^`]*$/;
const UUID = /^[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}$/;
const IPV4 = /^(?:(?:25[0-5]|2[0-4]\d|1?\d?\d)(?:\.(?!$)|$)){4}$/;

function isDate(text: string): boolean {
  const parts = DATE.exec(text);
  if (parts === null) return false;
  const [year, month, day] = [Number(parts[1]), Number(parts[2]), Number(parts[3])];
  const date = new Date(Date.UTC(2000, month - 1, day));
  date.setUTCFullYear(year, month - 1, day);
  return date.getUTCMonth() === month - 1 && date.getUTCDate() === day;
}

function isDateTime(text: string): boolean {
  const separator = text[10];
  return (
    (separator === 'T' || separator === 't' || separator === ' ') &&
    isDate(text.slice(0, 10)) &&
    TIME.test(text.slice(11))
  );
}

function short(check: (text: string) => boolean): (text: string) => boolean {
  return (text) => text.length <= MAX_FORMAT_CHARS && check(text);
}

/** Checks by format name. */
export const SCHEMA_FORMATS: { readonly [format: string]: (text: string) => boolean } = {
  date: short(isDate),
  time: short((text) => TIME.test(text)),
  'date-time': short(isDateTime),
  email: short((text) => EMAIL.test(text)),
  uri: short((text) => URI.test(text)),
  uuid: short((text) => UUID.test(text)),
  ipv4: short((text) => IPV4.test(text)),
};
