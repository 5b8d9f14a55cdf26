import { Ajv2020 } from 'ajv/dist/2020.js';
import { describe, expect, it } from 'vitest';
import { buildEvent, decisionEvent } from '../../../../src/audit/event.js';
import { SCHEMAS } from '../../../../src/cli/validate.js';
import { validateShape } from '../../../../src/config/schema/validation.js';
import { openRecord } from '../../../../src/policy/record.js';

/** As a reader of the published schemas would validate: no knowledge of our keywords and formats. */
function plainValidator(name: string): (value: unknown) => boolean {
  const ajv = new Ajv2020({ strict: false, validateFormats: false });
  const validate = ajv.compile(SCHEMAS.get(name) ?? false);
  return (value) => validate(value);
}

describe('[C-13] the published JSON Schemas', () => {
  it('are six, of draft 2020-12, and compile for strangers', () => {
    expect([...SCHEMAS.keys()]).toEqual(['gateway', 'policy', 'policy-test', 'lock', 'stdio', 'audit']);
    for (const [name, schema] of SCHEMAS) {
      expect(schema['$schema']).toBe('https://json-schema.org/draft/2020-12/schema');
      expect(() => plainValidator(name)).not.toThrow();
      expect(() => validateShape(schema, {})).not.toThrow();
    }
  });

  it('say of a value that is refused where it is, also if a condition alone refuses it', () => {
    const schema = JSON.parse('{"if": {"type": "object"}, "then": false}');
    const validated = validateShape(schema, {}, '/rules/0');
    expect(validated).toMatchObject({ isValid: false, diagnostics: [{ path: ['rules', 0], severity: 'error' }] });
  });

  it('describe every key', () => {
    const bare: string[] = [];
    const walk = (schema: unknown, path: string): void => {
      if (typeof schema !== 'object' || schema === null) return;
      for (const [keyword, value] of Object.entries(schema)) {
        if (keyword !== 'properties') {
          walk(value, path);
          continue;
        }
        for (const [key, child] of Object.entries(value as Record<string, object>)) {
          const isDescribed = 'description' in child || 'const' in child || path.includes('.pii');
          if (!isDescribed) bare.push(`${path}.${key}`);
          walk(child, `${path}.${key}`);
        }
      }
    };
    for (const name of ['gateway', 'policy', 'lock']) walk(SCHEMAS.get(name), name);
    expect(bare).toEqual([]);
  });

  it('know units as patterns too, for editors', () => {
    const isPolicy = plainValidator('policy');
    const rule = { id: 'a', effect: 'allow', who: { anyone: true }, what: { tools: ['*'] } };
    const policy = (limits: object): object => ({
      ...{ version: 1, policy: 'p', rules: [{ ...rule, limits }] },
    });
    expect(isPolicy(policy({ rate: '60/min' }))).toBe(true);
    expect(isPolicy(policy({ rate: '60/m' }))).toBe(false);
  });

  it('hold for the audit events that are written', () => {
    const isEvent = plainValidator('audit');
    const gateway = { instance: 'i', version: '1', config: 'c', policy: 'p', pins: 'q' };
    const context = { gateway, nowMs: 0 };
    const record = openRecord({
      id: '00000000-0000-4000-8000-000000000000',
      upstream: 'github',
      httpMethod: 'POST',
      remoteAddress: '192.0.2.1',
      startedMs: 0,
      receivedAt: 0,
    });
    const texts = [
      decisionEvent(record, context),
      buildEvent({ type: 'config.reload', result: 'applied', faults: 0 }, context),
      buildEvent({ type: 'lifecycle', event: 'start' }, context),
    ];
    const chain = { seq: 1, prev: '0'.repeat(64), hash: '1'.repeat(64) };
    for (const { before, after } of texts) {
      const event = JSON.parse(`${before}e${after}}`);
      expect(isEvent({ ...event, chain })).toBe(true);
      expect(isEvent({ ...event, chain, type: 'other' })).toBe(false);
    }
  });
});
