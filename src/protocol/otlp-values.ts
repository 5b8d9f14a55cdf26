// The values of OpenTelemetry's protocol in its JSON form, of spans and of logs: attributes, and times as text. Pure.
// Source: OpenTelemetry Protocol 1.x (OTLP/HTTP, JSON Protobuf encoding; common/v1/common.proto).

export type Attribute = string | number | boolean;
export type Attributes = Readonly<Record<string, Attribute | undefined>>;

const NANOSECONDS = 1e6;

/** Milliseconds since the epoch in nanoseconds: full ones exactly, their fractions by a double. */
export function nanosecondsOf(epochMs: number): string {
  const integer = Math.floor(epochMs);
  return String(BigInt(integer) * BigInt(NANOSECONDS) + BigInt(Math.round((epochMs - integer) * NANOSECONDS)));
}

/** Attributes that have a value. */
export function attributesOf(attributes: Attributes): readonly object[] {
  return Object.entries(attributes).flatMap(([key, value]) =>
    value === undefined || value === '' ? [] : [{ key, value: otlpValue(value) }],
  );
}

function otlpValue(value: Attribute): object {
  if (typeof value === 'string') return { stringValue: value };
  if (typeof value === 'boolean') return { boolValue: value };
  return Number.isInteger(value) ? { intValue: String(value) } : { doubleValue: value };
}
