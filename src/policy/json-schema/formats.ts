// The formats of JSON Schema that can be asserted: those whose syntax is simple. Every other format is an annotation
// wherever it stands. Each check is linear in the text, whose length is bounded first.
// Source: JSON Schema 2020-12 validation §7.3; RFC 3339 §5.6; RFC 4122 §3; RFC 3986.

/** A longer text has no asserted format. */
const MAX_FORMAT_CHARS = 2048;

const DATE = /^(\d{4})-(\d{2})-(\d{2})$/;
const TIME = /^([01]\d|2[0-3]):[0-5]\d:([0-5]\d|60)(?:\.\d+)?(?:[zZ]|[+-](?:[01]\d|2[0-3]):[0-5]\d)$/;
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

const FORMATS: ReadonlyMap<string, (text: string) => boolean> = new Map([
  ['date', isDate],
  ['time', (text) => TIME.test(text)],
  ['date-time', isDateTime],
  ['email', (text) => EMAIL.test(text)],
  ['uri', (text) => URI.test(text)],
  ['uuid', (text) => UUID.test(text)],
  ['ipv4', (text) => IPV4.test(text)],
]);

/** Whether a text has a format. True for every format that cannot be asserted. */
export function isFormat(format: string, text: string): boolean {
  const check = FORMATS.get(format);
  return check === undefined || (text.length <= MAX_FORMAT_CHARS && check(text));
}
