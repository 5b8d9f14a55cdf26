import { describe, expect, it } from 'vitest';
import { buildProgram } from '../../../src/cli/program.js';
import { configOfServe, healthcheckCommand } from '../../../src/cli/serve.js';
import { filesOf, GOOD } from '../config/reading.js';
import { terminal } from './console.js';

const run = (argv: readonly string[], answer: () => Promise<number>, ...served: readonly string[]) =>
  runIn({}, argv, answer, ...served);

async function runIn(
  env: Readonly<Record<string, string>>,
  argv: readonly string[],
  answer: () => Promise<number>,
  ...served: readonly string[]
) {
  const asked: string[] = [];
  const io = terminal({ env });
  const command = healthcheckCommand(io, {
    files: filesOf({
      '/srv/all.yaml': `${GOOD}listeners: {ops: {host: 0.0.0.0, port: 9999}}\n`,
      '/srv/one.yaml': `${GOOD}listeners: {ops: {host: "fd00::1", port: 9998}}\n`,
      '/srv/edited.yaml': `${GOOD}listeners: {ops: {port: 9997}}\n`.replace('url: ', 'ulr: '),
      '/srv/bad.yaml': 'x: [',
    }),
    fetchStatus: (url, _timeoutMs, host) => {
      asked.push(host === undefined ? url : `${host} at ${url}`);
      return answer();
    },
    servedConfigs: () => Promise.resolve(served),
  });
  const code = await buildProgram(io, [command]).run(['healthcheck', ...argv]);
  return { code, asked, err: io.err() };
}

const fine = (): Promise<number> => Promise.resolve(200);

describe('[C-23] healthcheck', () => {
  it.each([
    [[], 'http://127.0.0.1:9464/livez'],
    [['--port', '9001'], 'http://127.0.0.1:9001/livez'],
    [['-c', 'all.yaml'], 'http://127.0.0.1:9999/livez'],
    [['-c', 'one.yaml'], 'http://[fd00::1]:9998/livez'],
    [['-c', 'edited.yaml'], 'http://127.0.0.1:9997/livez'],
    [['-c', 'bad.yaml'], 'http://127.0.0.1:9464/livez'],
  ])('%j asks %s', async (argv, url) => {
    expect(await run(argv, fine)).toEqual({ code: 0, asked: [url], err: '' });
  });

  it.each([
    [[], 'http://127.0.0.1:9999/livez'],
    [['-c', 'one.yaml'], 'http://[fd00::1]:9998/livez'],
    [['--port', '9001'], 'http://127.0.0.1:9001/livez'],
  ])('%j, while a gateway runs whose file has port 9999, asks %s', async (argv, url) => {
    expect(await run(argv, fine, '/srv/all.yaml')).toEqual({ code: 0, asked: [url], err: '' });
  });

  it('says what to give where several gateways run, and asks nobody', async () => {
    const files = ['/srv/one.yaml', '/srv/all.yaml'];
    expect(await run([], fine, ...files)).toEqual({
      ...{ code: 2, asked: [] },
      err: 'error: several gateways run on this machine (/srv/all.yaml, /srv/one.yaml); name one with -c FILE or --port\n',
    });
    expect((await run(['-c', 'all.yaml'], fine, ...files)).asked).toEqual(['http://127.0.0.1:9999/livez']);
    expect((await run(['--port', '9001'], fine, ...files)).asked).toEqual(['http://127.0.0.1:9001/livez']);
    const named = { SALLYPORT_CONFIG: 'all.yaml' };
    expect((await runIn(named, [], fine, ...files)).asked).toEqual(['http://127.0.0.1:9999/livez']);
    expect((await runIn({ SALLYPORT_CONFIG: 'edited.yaml' }, [], fine, ...files)).code).toBe(2);
  });

  it.each([
    ['node main.js serve -c gateway.yaml', 'gateway.yaml'],
    ['node main.js serve --log-level debug --config gateway.yaml', 'gateway.yaml'],
    ['node main.js serve --config=gateway.yaml', 'gateway.yaml'],
    ['node main.js serve -cgateway.yaml', 'gateway.yaml'],
    ['node main.js serve', undefined],
    ['node main.js healthcheck -c gateway.yaml', undefined],
    ['node other.js serve -c gateway.yaml', undefined],
    ['', undefined],
  ])('finds in %j the file %s', (given, file) => {
    expect(configOfServe(given.split(' '), (path) => path === 'main.js')).toBe(file);
  });

  it('exits with 1 where the answer is another, or none', async () => {
    expect(await run([], () => Promise.resolve(503))).toMatchObject({
      code: 1,
      err: 'error: http://127.0.0.1:9464/livez answered 503\n',
    });
    expect(await run([], () => Promise.reject(new Error('refused')))).toMatchObject({
      code: 1,
      err: 'error: http://127.0.0.1:9464/livez does not answer\n',
    });
  });

  it('asks every URL that it is given, up to the first that does not answer with 200', async () => {
    const urls = ['http://edge-metrics:9464/readyz', 'https://edge:8080/.well-known/oauth-protected-resource/a'];
    const argv = urls.flatMap((url) => ['--url', url]);
    expect(await run(argv, fine)).toEqual({ code: 0, asked: urls, err: '' });
    expect(await run(argv, () => Promise.resolve(404))).toEqual({
      code: 1,
      asked: urls.slice(0, 1),
      err: 'error: http://edge-metrics:9464/readyz answered 404\n',
    });
    const named = await run(['--url', 'http://edge:8080/', '--host', 'mcp.example.com'], fine);
    expect(named.asked).toEqual(['mcp.example.com at http://edge:8080/']);
    for (const url of ['edge:9464', 'file:///etc/passwd', '/readyz'])
      expect(await run(['--url', url], fine)).toMatchObject({ code: 2, asked: [] });
  });

  it('takes no other word for a port', async () => {
    for (const port of ['0', 'x', '65536', '1e3']) {
      expect(await run(['--port', port], fine)).toMatchObject({ code: 2, asked: [] });
    }
  });
});
